"""Who sets variables, and are they shown as text?"""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from ci.models import Variable
from tests.playground import Playground

REPOSITORY, OWNER = "/alice/widgets/settings/variables/", "/settings/variables/"


@pytest.mark.parametrize("address", [REPOSITORY, OWNER])
def test_it_is_set_shown_and_deleted(alice: Client, playground: Playground, address: str) -> None:
    assert playground.repository
    given = {"action": "set", "name": "region", "value": "<b>eu\r\n north "}
    text = alice.post(address, given, follow=True).content.decode()
    assert Variable.objects.get().value == "<b>eu\n north "
    assert "REGION" in text
    assert "&lt;b&gt;eu\n north" in text
    alice.post(address, {"action": "delete", "name": "REGION"})
    assert not Variable.objects.exists()


def test_a_refused_one_keeps_what_was_typed(alice: Client, playground: Playground) -> None:
    assert playground.repository
    response = alice.post(REPOSITORY, {"action": "set", "name": "a-b", "value": "typed words"})
    assert response.status_code == 422
    assert "typed words" in response.content.decode()


def test_an_empty_page_says_so(alice: Client, playground: Playground) -> None:
    assert playground.repository
    assert b"No variables yet" in alice.get(REPOSITORY).content


def test_who_may(playground: Playground, browser: Any) -> None:
    assert playground.repository
    for person, status in ((playground.bob, 403), (playground.mallory, 404), (None, 404)):
        assert browser(person).get(REPOSITORY).status_code == status


@pytest.mark.parametrize(
    "form",
    [
        {"action": "set", "name": "BIG", "value": "x" * (13 * 1024 * 1024)},
        {"action": "set", "name": "MANY", "value": "1", **{f"field{number}": "1" for number in range(2500)}},
    ],
    ids=["bytes", "fields"],
)
def test_a_form_beyond_the_bounds_is_refused_and_changes_nothing(
    alice: Client, playground: Playground, form: dict[str, str]
) -> None:
    assert playground.repository
    answer = alice.post(REPOSITORY, urlencode(form), content_type="application/x-www-form-urlencoded")
    assert answer.status_code in (400, 413)
    assert not Variable.objects.exists()

"""Who sets secrets, and does any page ever show one again?"""

from typing import Any

import pytest
from django.test import Client

from ci.lifecycle.encryption import decrypt
from ci.models import Scope, Secret
from tests.playground import Playground

REPOSITORY, OWNER = "/alice/widgets/settings/secrets/", "/settings/secrets/"


@pytest.mark.parametrize("address", [REPOSITORY, OWNER])
def test_it_is_set_replaced_and_deleted_and_never_shown(alice: Client, playground: Playground, address: str) -> None:
    scope = Scope(repository=playground.repository) if address == REPOSITORY else Scope(owner=playground.alice)
    for value in ("hunter2-first", "hunter2-second\nline"):
        given = {"action": "set", "name": "deploy_key", "value": value.replace("\n", "\r\n")}
        text = alice.post(address, given, follow=True).content.decode()
        assert "The secret DEPLOY_KEY is set." in text
        assert "hunter2" not in text
        secret = Secret.objects.get()
        assert secret.scope == scope
        assert decrypt(secret.encrypted) == value
    text = alice.get(address).content.decode()
    assert "DEPLOY_KEY" in text
    assert "hunter2" not in text
    assert secret.encrypted not in text
    alice.post(address, {"action": "delete", "name": "DEPLOY_KEY"})
    assert not Secret.objects.exists()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("1abc", "hunter2", "not starting with a digit"),
        ("GITHUB_X", "hunter2", "with GITHUB_"),
        ("a b", "hunter2", "Use letters"),
        ("", "hunter2", "This field is required."),
        ("OK", "", "A secret needs a value."),
        ("OK", "hunter2" * 10_000, "At most 48 KiB"),
    ],
)
def test_a_refused_one_says_why_and_is_not_sent_back(
    alice: Client, playground: Playground, name: str, value: str, said: str
) -> None:
    assert playground.repository
    response = alice.post(REPOSITORY, {"action": "set", "name": name, "value": value})
    text = response.content.decode()
    assert response.status_code == 422
    assert said in text.replace("&#x27;", "'")
    assert "hunter2" not in text
    assert not Secret.objects.exists()


def test_deleting_what_is_not_there_says_so(alice: Client, playground: Playground) -> None:
    assert playground.repository
    text = alice.post(REPOSITORY, {"action": "delete", "name": "NONE\0"}, follow=True).content.decode()
    assert "There is no NONE" in text


def test_who_may(playground: Playground, browser: Any) -> None:
    assert playground.repository
    for person, status in ((playground.bob, 403), (playground.carol, 403), (playground.mallory, 404), (None, 404)):
        client = browser(person)
        assert client.get(REPOSITORY).status_code == status
        assert client.post(REPOSITORY, {"action": "set", "name": "A", "value": "b"}).status_code == status
    assert browser(None).get(OWNER)["Location"] == f"/login/?next={OWNER}"
    assert not Secret.objects.exists()


def test_one_owner_does_not_see_what_another_has(playground: Playground, browser: Any) -> None:
    browser(playground.bob).post(OWNER, {"action": "set", "name": "BOBS", "value": "x"})
    assert b"BOBS" not in browser(playground.alice).get(OWNER).content
    assert b"BOBS" in browser(playground.bob).get(OWNER).content

"""How does the newest run look from elsewhere?"""

from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client

from tests.playground import ONE_JOB, Playground

BADGE = "/alice/widgets/actions/workflows/ci.yml/badge.svg"


@pytest.mark.parametrize(("conclusion", "word"), [("success", "passing"), ("failure", "failing")])
def test_it_says_how_the_newest_ended(alice: Client, playground: Playground, conclusion: str, word: str) -> None:
    playground.run()
    playground.work(playground.runner(), {"build": conclusion})
    playground.run()  # not ended yet, so it does not count
    response = alice.get(BADGE)
    assert response["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert ElementTree.fromstring(response.content).attrib["aria-label"] == f"CI: {word}"


def test_other_branches_and_events_have_their_own(alice: Client, playground: Playground) -> None:
    playground.run(branch="topic")
    playground.work(playground.runner())
    assert b"no status" in alice.get(BADGE).content
    assert b"passing" in alice.get(f"{BADGE}?branch=topic").content
    assert b"no status" in alice.get(f"{BADGE}?branch=topic&event=schedule").content
    assert b"no status" in alice.get(f"{BADGE}?branch=%00&event=%00").content


def test_a_name_is_text(alice: Client, playground: Playground) -> None:
    playground.run(ONE_JOB.replace("CI", '"<script>&\'"'))
    content = alice.get(BADGE).content
    ElementTree.fromstring(content)
    assert b"<script" not in content


def test_a_private_one_is_hidden_and_not_kept(playground: Playground, browser: Any) -> None:
    playground.run()
    assert browser(None).get(BADGE).status_code == 404
    assert browser(playground.mallory).get(BADGE).status_code == 404
    assert browser(playground.carol).get(BADGE)["Cache-Control"] == "private, no-cache"


def test_a_public_one_may_be_kept_and_is_not_sent_twice(playground: Playground, browser: Any) -> None:
    playground.run(repository=playground.make_repository(name="public", private=False))
    address = BADGE.replace("widgets", "public")
    response = browser(None).get(address)
    assert response["Cache-Control"] == "public, max-age=60"
    again = browser(None).get(address, headers={"If-None-Match": response["ETag"]})
    assert (again.status_code, again.content) == (304, b"")

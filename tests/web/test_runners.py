"""Who sees, pauses and removes which runners, and who may let new ones come?"""

import re
from typing import Any

import pytest
from django.test import Client

from ci.lifecycle import registration
from ci.models import RegistrationToken, Runner, Scope
from forge.tokens import hash_token
from tests.playground import Playground

REPOSITORY, OWNER, INSTANCE = "/alice/widgets/settings/runners/", "/settings/runners/", "/runners/"


def mine(playground: Playground, name: str = "alpha") -> Runner:
    return playground.runner("linux", "gpu", name=name, scope=Scope(repository=playground.repository))


def test_it_shows_what_a_runner_is_and_does(alice: Client, playground: Playground) -> None:
    runner = mine(playground)
    text = alice.get(REPOSITORY).content.decode()
    for part in ("alpha", "Idle", "linux", "gpu", "nothing"):
        assert part in text
    playground.run()
    assigned = playground.assigned(runner).begin()
    text = alice.get(REPOSITORY).content.decode()
    assert assigned.job.get_absolute_url() in text
    Runner.objects.update(last_seen_at="2020-01-01T00:00:00Z")
    assert "Offline" in alice.get(REPOSITORY).content.decode()


def test_each_scope_shows_its_own(playground: Playground, browser: Any) -> None:
    mine(playground, "of-the-repository")
    playground.runner(name="of-the-owner", scope=Scope(owner=playground.alice))
    playground.runner(name="of-the-instance")
    operator, alice = browser(playground.operator), browser(playground.alice)
    for client, address, name in (
        (alice, REPOSITORY, "of-the-repository"),
        (alice, OWNER, "of-the-owner"),
        (operator, INSTANCE, "of-the-instance"),
    ):
        text = client.get(address).content.decode()
        assert re.findall(r"of-the-\w+(?=</span><div)", text) == [name]


def test_an_empty_page_says_what_to_do(alice: Client, playground: Playground) -> None:
    assert playground.repository
    assert b"No runners yet" in alice.get(REPOSITORY).content
    assert b"No runners yet" in alice.get(OWNER).content


def test_a_new_token_is_shown_once_with_the_commands(alice: Client, playground: Playground) -> None:
    assert playground.repository
    response = alice.post(REPOSITORY, {"action": "create_token"})
    text = response.content.decode()
    match = re.search(r"frg_[A-Za-z0-9_-]{20,}", text)
    assert match
    token = RegistrationToken.objects.get()
    assert token.token_hash == hash_token(match[0])
    assert token.scope == Scope(repository=playground.repository)
    assert token.created_by == playground.alice
    assert f"python -m ci.runner register --url http://127.0.0.1:8000 --token {match[0]}" in text
    assert "no-store" in response["Cache-Control"]
    assert match[0] not in alice.get(REPOSITORY).content.decode()
    runner, _ = registration.register_runner(token=match[0], name="new", labels=["x"])
    assert runner.repository == playground.repository


@pytest.mark.parametrize("action", [None, "create_token"])
def test_the_commands_without_a_token_are_there_at_any_time(
    alice: Client, playground: Playground, action: str | None
) -> None:
    assert playground.repository
    for address, scope in ((REPOSITORY, " --scope alice/widgets"), (OWNER, " --scope alice")):
        response = alice.post(address, {"action": action}) if action else alice.get(address)
        blocks = re.findall(r'<pre class="copy">(.*?)</pre>', response.content.decode(), re.DOTALL)
        forge, machine = blocks[-2:]
        assert f"manage.py create_runner --name builder --labels ubuntu-latest{scope}" in forge.splitlines()[1]
        assert forge.endswith(scope)
        assert "forgejo-runner create-runner-file --instance http://127.0.0.1:8000 --secret" in machine


def test_a_token_is_revoked(alice: Client, playground: Playground) -> None:
    mine(playground)
    token = RegistrationToken.objects.get()
    alice.post(REPOSITORY, {"action": "revoke_token", "token": token.pk})
    token.refresh_from_db()
    assert token.revoked_at
    assert token.hint not in re.sub("(?s)<ul class=.messages.*?</ul>", "", alice.get(REPOSITORY).content.decode())


def test_a_runner_is_paused_resumed_and_removed(alice: Client, playground: Playground) -> None:
    runner = mine(playground)
    for action, word, paused in (("pause", "Paused", True), ("resume", "takes jobs again", False)):
        runner.refresh_from_db()
        given = {"action": action, "runner": runner.pk, "version": runner.version}
        assert word in alice.post(REPOSITORY, given, follow=True).content.decode()
        runner.refresh_from_db()
        assert runner.paused is paused
    alice.post(REPOSITORY, {"action": "remove", "runner": runner.pk, "version": runner.version})
    assert not Runner.objects.exists()


def test_a_stale_form_changes_nothing(alice: Client, playground: Playground) -> None:
    runner = mine(playground)
    registration.pause_runner(runner_id=runner.pk, paused=True, actor=playground.alice)
    for action in ("resume", "remove"):
        given = {"action": action, "runner": runner.pk, "version": runner.version}
        assert "has changed meanwhile" in alice.post(REPOSITORY, given, follow=True).content.decode()
    runner.refresh_from_db()
    assert runner.paused


def test_nobody_reaches_a_runner_or_token_of_another_scope(alice: Client, playground: Playground) -> None:
    assert playground.repository
    runner = playground.runner()
    token = RegistrationToken.objects.get()
    for address in (REPOSITORY, OWNER):
        for action in ("pause", "remove"):
            assert alice.post(address, {"action": action, "runner": runner.pk}).status_code == 404
        assert alice.post(address, {"action": "revoke_token", "token": token.pk}).status_code == 404
    runner.refresh_from_db()
    token.refresh_from_db()
    assert not runner.paused
    assert token.revoked_at is None


@pytest.mark.parametrize("given", [{}, {"action": "nonsense"}, {"action": "pause"}, {"action": "pause", "runner": "x"}])
def test_a_form_that_is_none_of_ours_is_a_bad_request(
    alice: Client, playground: Playground, given: dict[str, str]
) -> None:
    assert playground.repository
    assert alice.post(REPOSITORY, given).status_code == 400


def test_who_may_see_them(playground: Playground, browser: Any) -> None:
    assert playground.repository
    for person, status in (
        (playground.alice, 200),
        (playground.operator, 200),
        (playground.bob, 403),
        (playground.carol, 403),
        (playground.mallory, 404),
        (None, 404),
    ):
        client = browser(person)
        assert client.get(REPOSITORY).status_code == status
        answered = client.post(REPOSITORY, {"action": "create_token"}).status_code
        assert answered == status
    assert browser(playground.alice).get(INSTANCE).status_code == 403
    for address in (OWNER, INSTANCE):
        assert browser(None).get(address)["Location"] == f"/login/?next={address}"


def test_twenty_busy_runners_cost_as_many_queries_as_one(
    alice: Client, playground: Playground, django_assert_num_queries: Any
) -> None:
    playground.run(
        "name: CI\non: push\njobs:\n  a:\n    runs-on: gpu\n    strategy: {matrix: {n: ["
        + ", ".join(map(str, range(20)))
        + "]}}\n    steps: [{run: x}]\n"
    )
    for number in range(20):
        playground.assigned(mine(playground, f"runner-{number}"))
    with django_assert_num_queries(7):  # session, user, repository, count, runners, their jobs, tokens
        assert alice.get(REPOSITORY).content.count(b"/jobs/") == 20

"""Who may cancel, re-run and approve a run, and what does a stale form do?"""

from typing import Any

import pytest
from django.test import Client

from ci.models import Run
from tests.playground import ONE_JOB, Playground, states_of
from tests.web.test_run import page


def outcome(run: Run) -> str:
    run.refresh_from_db()
    return run.outcome


def test_a_writer_cancels(playground: Playground, browser: Any) -> None:
    run = playground.run()
    response = browser(playground.bob).post(page(run, "cancel/"), {"version": run.version}, follow=True)
    assert response.redirect_chain == [(page(run), 302)]
    assert outcome(run) == "cancelled"
    text = response.content.decode()
    assert "Cancelled 1 job." in text
    assert "Cancelled by bob." in text


def test_a_running_job_is_asked_and_then_forced(alice: Client, playground: Playground) -> None:
    run = playground.run()
    playground.assigned().begin()
    text = alice.post(page(run, "cancel/"), follow=True).content.decode()
    assert "has been asked to stop" in text
    assert "Force cancel" in text
    assert states_of(run) == {"build": "cancelling"}
    run.refresh_from_db()
    alice.post(page(run, "force-cancel/"), {"version": run.version})
    assert outcome(run) == "cancelled"


def test_a_form_on_an_older_version_changes_nothing(alice: Client, playground: Playground) -> None:
    run = playground.run()
    stale = run.version
    playground.assigned().begin()
    run.refresh_from_db()
    assert run.version != stale
    text = alice.post(page(run, "cancel/"), {"version": stale}, follow=True).content.decode()
    assert "has changed meanwhile" in text
    assert outcome(run) == "running"
    assert states_of(run) == {"build": "running"}


def test_what_goes_on_in_a_cancelled_run_is_said_and_can_be_forced(alice: Client, playground: Playground) -> None:
    run = playground.run(
        """
        on: push
        jobs:
          build: {runs-on: linux, steps: [{run: x}]}
          cleanup: {runs-on: linux, if: always(), steps: [{run: x}]}
        """
    )
    text = alice.post(page(run, "cancel/"), follow=True).content.decode()
    assert "Cancelling 1 job: others go on, since their condition holds in a cancelled run too." in text
    assert "by alice. What has been asked to stop" in text and "<em>Force cancel</em> ends all of it" in text
    assert 'id="force-cancel"' in text and 'id="cancel"' not in text
    text = alice.post(page(run, "force-cancel/"), follow=True).content.decode()
    assert outcome(run) == "cancelled"
    assert "Force cancel" not in text


def test_cancelling_twice_says_so(alice: Client, playground: Playground) -> None:
    run = playground.run()
    alice.post(page(run, "cancel/"))
    assert "had already ended" in alice.post(page(run, "cancel/"), follow=True).content.decode()


@pytest.mark.parametrize(("mode", "again"), [("all", {"a", "b"}), ("failed", {"b"})])
def test_it_runs_again(alice: Client, playground: Playground, mode: str, again: set[str]) -> None:
    run = playground.run(
        """
        name: CI
        on: push
        jobs:
          a: {runs-on: linux, steps: [{run: x}]}
          b: {runs-on: linux, steps: [{run: x}]}
        """
    )
    playground.work(playground.runner(), {"b": "failure"})
    run.refresh_from_db()
    text = alice.post(page(run, "rerun/"), {"mode": mode, "version": run.version}, follow=True).content.decode()
    assert "Attempt 2 has started." in text
    assert {name for name, state in states_of(run).items() if state == "queued"} == again


def test_a_run_that_goes_on_is_not_run_again(alice: Client, playground: Playground) -> None:
    run = playground.run()
    assert "has not ended yet" in alice.post(page(run, "rerun/"), follow=True).content.decode()
    run.refresh_from_db()
    assert run.attempt == 1


def test_approving_a_run_that_does_not_wait_says_so(alice: Client, playground: Playground) -> None:
    run = playground.run()
    assert "does not wait for an approval" in alice.post(page(run, "approve/"), follow=True).content.decode()


def test_a_run_that_waits_for_approval_can_be_approved(alice: Client, playground: Playground) -> None:
    run = playground.run()
    Run.objects.filter(pk=run.pk).update(approval_pending=True, state="waiting")
    run.jobs.update(state="blocked", hold="run", queued_at=None)
    text = alice.get(page(run)).content.decode()
    assert "Approve and run" in text
    assert "waits until somebody with write access approves it" in text
    alice.post(page(run, "approve/"))
    assert states_of(run) == {"build": "queued"}


VERBS = ["cancel/", "force-cancel/", "rerun/", "approve/"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_reader_may_not(playground: Playground, browser: Any, verb: str) -> None:
    run = playground.run()
    assert browser(playground.carol).post(page(run, verb)).status_code == 403
    assert outcome(run) == "queued"


@pytest.mark.parametrize("verb", VERBS)
def test_for_a_stranger_there_is_nothing(playground: Playground, browser: Any, verb: str) -> None:
    run = playground.run()
    for person in (playground.mallory, None):
        assert browser(person).post(page(run, verb)).status_code == 404
    assert outcome(run) == "queued"


def test_a_public_run_is_not_for_everybody_to_cancel(playground: Playground, browser: Any) -> None:
    public = playground.make_repository(name="public", private=False)
    run = playground.run(ONE_JOB, repository=public)
    for person in (playground.mallory, None):
        assert browser(person).post(f"/alice/public/actions/runs/{run.pk}/cancel/").status_code == 403
    assert outcome(run) == "queued"


@pytest.mark.parametrize("verb", VERBS)
def test_a_link_does_nothing(alice: Client, playground: Playground, verb: str) -> None:
    assert alice.get(page(playground.run(), verb)).status_code == 405


def test_another_site_cannot_post(playground: Playground) -> None:
    run = playground.run()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(playground.alice)
    response = strict.post(page(run, "cancel/"))
    assert response.status_code == 403
    assert b"The form has expired" in response.content
    assert outcome(run) == "queued"


@pytest.mark.parametrize("version", ["x", "-1", "1e3", "9" * 30, ""])
def test_a_version_that_is_no_number_is_a_bad_request(alice: Client, playground: Playground, version: str) -> None:
    run = playground.run()
    assert alice.post(page(run, "cancel/"), {"version": version}).status_code == 400
    assert outcome(run) == "queued"

"""claim, repeat_claim: queued -> assigned."""

import pytest

from ci.lifecycle import fetch, registration
from ci.lifecycle.errors import Unauthenticated
from ci.models import Job, JobState, Scope, Secret
from tests.playground import Playground, jobs_of

TWO_JOBS = """
    on: push
    jobs:
      first: {runs-on: linux, steps: [{run: echo}]}
      second: {runs-on: [linux, gpu], steps: [{run: echo}]}
"""


def test_it_gives_the_queued_job_with_a_working_token(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assert assigned.job.state == JobState.ASSIGNED
    assert assigned.job.assignment == 1
    assert assigned.heartbeat().cancel is None


def test_it_stores_no_plaintext_token(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    stored = " ".join(str(value) for value in Job.objects.filter(pk=assigned.id).values()[0].values())
    assert assigned.token not in stored


def test_it_gives_nothing_when_nothing_is_queued(playground: Playground) -> None:
    assert playground.fetch(playground.runner()) is None


def test_it_wants_all_labels(playground: Playground) -> None:
    playground.run(TWO_JOBS)
    assert playground.work(playground.runner("linux")) == ["first"]
    assert playground.work(playground.runner("GPU", "Linux", "extra", name="beta")) == ["second"]


def test_it_gives_one_job_at_a_time_to_a_runner(playground: Playground) -> None:
    playground.run(TWO_JOBS)
    runner = playground.runner("linux", "gpu")
    playground.assigned(runner)
    assert playground.fetch(runner) is None


def test_it_gives_the_oldest_first(playground: Playground) -> None:
    older = playground.run()
    playground.run()
    assert playground.assigned().job.run == older


def test_a_paused_runner_gets_nothing(playground: Playground) -> None:
    playground.run()
    runner = playground.runner()
    registration.pause_runner(runner_id=runner.pk, paused=True, actor=playground.operator)
    assert playground.fetch(runner) is None
    registration.pause_runner(runner_id=runner.pk, paused=False, actor=playground.operator)
    assert playground.fetch(runner) is not None


@pytest.mark.parametrize("kind", ["other repository", "other owner"])
def test_a_runner_of_another_scope_gets_nothing(playground: Playground, kind: str) -> None:
    playground.run()
    other = playground.make_repository(name="other")
    scope = Scope(repository=other) if kind == "other repository" else Scope(owner=playground.bob)
    assert playground.fetch(playground.runner(scope=scope)) is None


@pytest.mark.parametrize("kind", ["repository", "owner"])
def test_a_runner_of_its_own_scope_gets_it(playground: Playground, kind: str) -> None:
    run = playground.run()
    scope = Scope(repository=run.repository) if kind == "repository" else Scope(owner=playground.alice)
    assert playground.fetch(playground.runner(scope=scope)) is not None


def test_a_single_use_runner_gets_one_job_ever(playground: Playground) -> None:
    playground.run()
    playground.run()
    runner = playground.runner(ephemeral=True)
    assert len(playground.work(runner)) == 1
    runner.refresh_from_db()
    assert runner.phase == "succeeded"
    assert playground.fetch(runner) is None


def test_a_single_use_runner_whose_job_vanished_gets_no_other(playground: Playground) -> None:
    gone = playground.run()
    playground.run()
    runner = playground.runner(ephemeral=True)
    playground.assigned(runner)
    gone.delete()
    assert playground.fetch(runner) is None


def test_the_same_poll_gets_the_same_job_with_a_new_token(playground: Playground) -> None:
    playground.run()
    runner = playground.runner()
    first = playground.assigned(runner, poll_id="p1")
    again = playground.assigned(runner, poll_id="p1")
    assert (again.id, again.job.assignment) == (first.id, 1)
    with pytest.raises(Unauthenticated):
        first.heartbeat()
    again.heartbeat()


def test_after_the_acknowledgement_there_is_nothing_to_repeat(playground: Playground) -> None:
    playground.run()
    runner = playground.runner()
    playground.assigned(runner, poll_id="p1").heartbeat()
    assert playground.fetch(runner, poll_id="p1") is None


def test_a_job_that_cannot_be_prepared_ends_failed_and_the_next_is_given(playground: Playground) -> None:
    broken = playground.run()
    fine = playground.run(repository=playground.make_repository(name="other"))
    Secret.objects.create(repository=broken.repository, name="LOST_KEY", encrypted="not-fernet")
    assert playground.assigned().job.run == fine
    job = jobs_of(broken)["build"]
    assert job.conclusion == "failure"
    assert "FORGE_SECRETS_KEYS" in job.end_note
    broken.refresh_from_db()
    assert broken.conclusion == "failure"


def test_a_poll_tries_so_many_broken_jobs_and_the_next_goes_on(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MAX_TRIES", 2)
    broken = [playground.run() for _ in range(3)]
    fine = playground.run(repository=playground.make_repository(name="other"))
    Secret.objects.create(repository=broken[0].repository, name="LOST_KEY", encrypted="not-fernet")
    runner = playground.runner()
    assert playground.fetch(runner) is None
    assert [jobs_of(run)["build"].state for run in broken] == ["ended", "ended", "queued"]
    assert playground.assigned(runner).job.run == fine


def test_a_removed_runner_is_unauthenticated(playground: Playground) -> None:
    runner = playground.runner()
    registration.remove_runner(runner_id=runner.pk)
    with pytest.raises(Unauthenticated):
        playground.fetch(runner)

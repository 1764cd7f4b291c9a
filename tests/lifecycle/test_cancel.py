"""cancel_job, cancel_run, forced or not."""

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.errors import Conflict, JobEnded, NotFound
from ci.models import Event, Job, Run
from tests.playground import Playground, jobs_of, states_of

TWO = """
    on: push
    jobs:
      first: {runs-on: linux, steps: [{run: echo}]}
      second: {needs: first, runs-on: linux, steps: [{run: echo}]}
"""


def cancel_run(playground: Playground, run: Run, **options: bool) -> int:
    return transitions.cancel_run(run_id=run.pk, actor=playground.bob, **options)


def test_it_ends_what_waits_at_once(playground: Playground) -> None:
    run = playground.run(TWO)
    assert cancel_run(playground, run) == 2
    assert states_of(run) == {"first": "cancelled", "second": "cancelled"}
    run.refresh_from_db()
    assert run.conclusion == "cancelled"
    job = jobs_of(run)["first"]
    assert (job.cancel_reason, job.cancelled_by, job.end_note) == ("owner", playground.bob, "Cancelled by bob.")


def test_it_asks_what_runs_and_gives_it_a_grace(playground: Playground) -> None:
    run = playground.run(TWO)
    assigned = playground.assigned().begin()
    cancel_run(playground, run)
    assert states_of(run) == {"first": "cancelling", "second": "cancelled"}
    assert assigned.heartbeat().cancel == "owner"
    assigned.complete("cancelled")
    run.refresh_from_db()
    assert run.conclusion == "cancelled"


def test_asking_twice_changes_nothing(playground: Playground) -> None:
    run = playground.run()
    assigned = playground.assigned().begin()
    cancel_run(playground, run)
    first = assigned.job
    with pytest.raises(Conflict):
        cancel_run(playground, run)
    assert assigned.job.version == first.version


def test_force_ends_what_runs_and_its_runner_is_told(playground: Playground) -> None:
    run = playground.run()
    assigned = playground.assigned().begin()
    cancel_run(playground, run, force=True)
    assert states_of(run) == {"build": "cancelled"}
    with pytest.raises(JobEnded) as ended:
        assigned.heartbeat()
    assert (ended.value.conclusion, ended.value.reason) == ("cancelled", "owner")


def test_force_keeps_who_asked_first(playground: Playground) -> None:
    run = playground.run()
    assigned = playground.assigned().begin()
    cancel_run(playground, run)
    transitions.cancel_job(job_id=assigned.id, actor=playground.operator, force=True)
    assert assigned.job.cancelled_by == playground.bob
    assert Event.objects.filter(job=assigned.id, kind="cancelled_by_force", actor=playground.operator).exists()


def test_an_ended_run_cannot_be_cancelled(playground: Playground) -> None:
    run = playground.run()
    playground.work(playground.runner())
    with pytest.raises(Conflict, match="Success"):
        cancel_run(playground, run)
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_one_job_can_be_cancelled_alone(playground: Playground) -> None:
    run = playground.run(TWO)
    transitions.cancel_job(job_id=jobs_of(run)["first"].pk, actor=playground.bob)
    assert states_of(run) == {"first": "cancelled", "second": "skipped"}


def test_an_old_version_changes_nothing(playground: Playground) -> None:
    run = playground.run()
    seen = jobs_of(run)["build"]
    playground.assigned()
    with pytest.raises(Conflict, match="meanwhile"):
        transitions.cancel_job(job_id=seen.pk, actor=playground.bob, version=seen.version)
    assert Job.objects.get(pk=seen.pk).cancel_reason == ""


def test_an_unknown_run_is_not_found(playground: Playground) -> None:
    with pytest.raises(NotFound):
        transitions.cancel_run(run_id=123456, actor=playground.alice)

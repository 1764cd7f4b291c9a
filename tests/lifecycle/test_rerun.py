"""rerun: ended -> the next attempt."""

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.errors import Conflict, NotFound
from ci.models import Job, RunAttempt
from tests.playground import Playground, jobs_of, states_of

THREE = """
    on: push
    jobs:
      good: {runs-on: linux, steps: [{run: echo}]}
      bad: {runs-on: linux, steps: [{run: echo}]}
      after: {needs: bad, runs-on: linux, steps: [{run: echo}]}
"""
MATRIX = """
    on: push
    jobs:
      test:
        runs-on: linux
        strategy: {fail-fast: false, matrix: {version: [1, 2]}}
        steps: [{run: echo}]
"""


def test_all_jobs_run_again(playground: Playground) -> None:
    run = playground.run(THREE)
    runner = playground.runner()
    playground.work(runner)
    run = transitions.rerun(run_id=run.pk, actor=playground.bob)
    assert (run.attempt, run.triggered_by_name, run.conclusion) == (2, "bob", None)
    assert playground.work(runner) == ["bad", "good", "after"] or states_of(run)["after"] == "success"
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_earlier_attempts_stay_readable(playground: Playground) -> None:
    run = playground.run(THREE)
    runner = playground.runner()
    playground.work(runner, {"bad": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.bob)
    earlier = RunAttempt.objects.get(run=run)
    assert (earlier.number, earlier.conclusion, earlier.triggered_by_name) == (1, "failure", "alice")
    assert {job.name: job.outcome for job in Job.objects.filter(run=run, attempt=1)} == {
        "good": "success",
        "bad": "failure",
        "after": "skipped",
    }


def test_failed_jobs_run_again_with_what_depends_on_them(playground: Playground) -> None:
    run = playground.run(THREE)
    runner = playground.runner()
    playground.work(runner, {"bad": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.bob, mode="failed")
    assert states_of(run) == {"good": "success", "bad": "queued", "after": "blocked"}
    good = jobs_of(run)["good"]
    assert good.carried_from is not None
    assert good.carried_from.attempt == 1
    assert playground.work(runner) == ["bad", "after"]
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_only_the_failed_leg_of_a_matrix_runs_again(playground: Playground) -> None:
    run = playground.run(MATRIX)
    runner = playground.runner()
    playground.work(runner, {"test (2)": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.bob, mode="failed")
    assert states_of(run) == {"test (1)": "success", "test (2)": "queued"}
    assert playground.work(runner) == ["test (2)"]


def test_a_leg_that_runs_again_keeps_its_times(playground: Playground) -> None:
    limits = "timeout-minutes: 7, cancel-timeout-minutes: 2"
    run = playground.run(
        f"on: push\njobs: {{a: {{runs-on: linux, {limits}, strategy: {{matrix: {{x: [1, 2]}}}}, "
        "steps: [{run: echo}]}}"
    )
    runner = playground.runner()
    playground.work(runner, {"a (2)": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.bob, mode="failed")
    again = jobs_of(run)["a (2)"]
    assert (again.timeout_minutes, again.cancel_timeout_minutes) == (7, 2)


def test_one_job_runs_again_with_what_depends_on_it(playground: Playground) -> None:
    run = playground.run(THREE)
    runner = playground.runner()
    playground.work(runner)
    transitions.rerun(run_id=run.pk, actor=playground.bob, mode="job", job_id=jobs_of(run)["bad"].pk)
    assert states_of(run) == {"good": "success", "bad": "queued", "after": "blocked"}


def test_a_third_attempt_carries_from_the_first(playground: Playground) -> None:
    run = playground.run(THREE)
    runner = playground.runner()
    for _ in range(2):
        playground.work(runner, {"bad": "failure"})
        transitions.rerun(run_id=run.pk, actor=playground.bob, mode="failed")
    good = jobs_of(run)["good"]
    assert good.carried_from is not None
    assert good.carried_from.attempt == 1


def test_a_run_that_has_not_ended_cannot_be_run_again(playground: Playground) -> None:
    run = playground.run()
    with pytest.raises(Conflict):
        transitions.rerun(run_id=run.pk, actor=playground.bob)


def test_nothing_failed_is_said(playground: Playground) -> None:
    run = playground.run()
    playground.work(playground.runner())
    with pytest.raises(Conflict, match="No job"):
        transitions.rerun(run_id=run.pk, actor=playground.bob, mode="failed")
    run.refresh_from_db()
    assert run.attempt == 1


def test_a_startup_failure_cannot_be_run_again(playground: Playground) -> None:
    run = playground.run("on: push\njobs: {}")
    with pytest.raises(Conflict, match="corrected file"):
        transitions.rerun(run_id=run.pk, actor=playground.bob)


def test_a_job_of_another_run_is_not_found(playground: Playground) -> None:
    run, other = playground.run(), playground.run()
    playground.work(playground.runner())
    with pytest.raises(NotFound):
        transitions.rerun(run_id=run.pk, actor=playground.bob, mode="job", job_id=jobs_of(other)["build"].pk)

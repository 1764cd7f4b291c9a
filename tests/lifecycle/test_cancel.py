"""cancel_job, cancel_run, forced or not."""

import pytest

from ci.lifecycle import sweeps, transitions
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


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("cancelled()", "skipped"), ("!cancelled()", "queued"), ("failure()", "skipped"), ("always()", "queued")],
)
def test_a_job_cancelled_alone_does_not_make_the_run_cancelled(playground: Playground, text: str, outcome: str) -> None:
    run = playground.run(with_condition(text, needs="needs: first,"))
    transitions.cancel_job(job_id=jobs_of(run)["first"].pk, actor=playground.bob)
    assert states_of(run) == {"first": "cancelled", "second": outcome}


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


# What each `if` makes of a job whose run is cancelled, while it is queued or runs and while it waits for its need.
CONDITIONS = {
    "always()": True,
    "cancelled()": True,
    "!failure()": True,
    "always() && github.ref_name == 'main'": True,
    "success() || cancelled()": True,
    "": False,
    "github.ref_name == 'main'": False,
    "success()": False,
    "!cancelled()": False,
    "failure()": False,
    "always() && github.ref_name == 'other'": False,
}


def with_condition(text: str, *, needs: str = "") -> str:
    return f"""
        on: push
        jobs:
          first: {{runs-on: linux, steps: [{{run: echo}}]}}
          second: {{runs-on: linux, if: "{text}", {needs} steps: [{{run: echo}}]}}
    """


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_waiting_job_is_decided_by_its_condition_once_its_needs_have_ended(playground: Playground, text: str) -> None:
    run = playground.run(with_condition(text, needs="needs: first,"))
    first = playground.assigned().begin()
    cancel_run(playground, run)
    assert states_of(run)["first"] == "cancelling"
    first.complete("cancelled")
    assert states_of(run)["second"] == ("queued" if CONDITIONS[text] else "cancelled")
    run.refresh_from_db()
    assert run.outcome == ("cancelling" if CONDITIONS[text] else "cancelled")
    if not CONDITIONS[text]:
        job = jobs_of(run)["second"]
        assert (job.cancel_reason, job.cancelled_by) == ("owner", playground.bob)
        assert job.end_note.startswith(("Cancelled by bob", "Its run was cancelled by bob"))


@pytest.mark.parametrize("text", ["always()", "!cancelled()", "github.ref_name == 'main'", "!failure()"])
def test_a_running_job_goes_on_where_its_condition_still_holds(playground: Playground, text: str) -> None:
    run = playground.run(with_condition(text))
    runner = playground.runner()
    first, second = playground.assigned(runner), playground.assigned(playground.runner(name="beta"))
    second.begin()
    cancel_run(playground, run)
    goes_on = CONDITIONS[text]
    assert states_of(run) == {"first": "cancelling", "second": "running" if goes_on else "cancelling"}
    assert second.heartbeat().cancel == (None if goes_on else "owner")
    first.begin().complete("cancelled")
    second.complete("success" if goes_on else "cancelled")
    run.refresh_from_db()
    assert run.conclusion == "cancelled"


def test_a_queued_job_that_goes_on_is_still_given_to_a_runner(playground: Playground) -> None:
    run = playground.run(with_condition("always()"))
    assert cancel_run(playground, run) == 1
    assert states_of(run) == {"first": "cancelled", "second": "queued"}
    assert playground.work(playground.runner()) == ["second"]
    run.refresh_from_db()
    assert (run.state, run.conclusion) == ("ended", "cancelled")


def test_what_goes_on_in_a_cancelled_run_is_ended_by_force(playground: Playground) -> None:
    run = playground.run(with_condition("always()"))
    assigned = [playground.assigned(playground.runner(name=name)).begin() for name in ("alpha", "beta")]
    cancel_run(playground, run)
    with pytest.raises(Conflict, match="forced cancel"):
        cancel_run(playground, run)
    cancel_run(playground, run, force=True)
    assert states_of(run) == {"first": "cancelled", "second": "cancelled"}
    for each in assigned:
        with pytest.raises(JobEnded):
            each.heartbeat()


def test_a_rerun_of_a_cancelled_run_is_not_cancelled(playground: Playground) -> None:
    run = playground.run(TWO)
    cancel_run(playground, run)
    transitions.rerun(run_id=run.pk, actor=playground.alice)
    run.refresh_from_db()
    assert (run.cancel_reason, run.cancelled_by, run.outcome) == ("", None, "queued")
    assert playground.work(playground.runner()) == ["first", "second"]
    run.refresh_from_db()
    assert run.conclusion == "success"


def test_a_run_that_waits_as_a_whole_keeps_no_job(playground: Playground) -> None:
    text = with_condition("always()").replace("on: push", "on: push\n        concurrency: deploy")
    playground.run(text)
    waiting = playground.run(text)
    assert cancel_run(playground, waiting) == 2
    assert states_of(waiting) == {"first": "cancelled", "second": "cancelled"}


def test_the_next_of_a_group_waits_for_what_goes_on_in_the_cancelled_run(playground: Playground) -> None:
    group = "on: push\n        concurrency: {group: deploy, cancel-in-progress: true}"
    text = with_condition("always()").replace("on: push", group)
    first, second = playground.run(text), playground.run(text)
    assert states_of(first) == {"first": "cancelled", "second": "queued"}
    assert jobs_of(first)["first"].cancel_reason == "superseded"
    second.refresh_from_db()
    assert second.state == "waiting"
    first.refresh_from_db()
    sweeps.settle_groups()
    assert Run.objects.get(pk=first.pk).version == first.version, "it was superseded a second time"
    playground.assigned().begin().complete()
    sweeps.settle_groups()
    second.refresh_from_db()
    assert second.state == "queued"

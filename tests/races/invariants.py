"""What must hold over the rows, whoever wrote them? Each check reads only, and names the row that breaks a rule."""

from __future__ import annotations

from django.db.models import Max

from ci.models import ACTIVE_STATES, ConcurrencyGroup, Hold, Job, JobState, Run, RunnerPhase, RunState, Workflow

GOING = (JobState.QUEUED, *ACTIVE_STATES)


def check_rows(*, after: int = 0) -> None:
    """All that rows alone can show, of runs whose id is above `after`. Raises AssertionError."""
    check_runs(after=after)
    check_groups()
    check_runners(after=after)
    check_numbers()


def check_runs(*, after: int = 0) -> None:
    """A run's state is what its jobs say, and no job is left behind."""
    for run in Run.objects.filter(pk__gt=after).order_by("pk"):
        jobs = list(Job.objects.filter(run=run, attempt=run.attempt).order_by("pk"))
        assert run.is_ended == all(job.is_ended for job in jobs), f"{run} is {run.state}, its jobs are not"
        if run.state == RunState.WAITING:
            assert all(job.hold == Hold.RUN or job.is_ended for job in jobs), f"{run} waits, but not all of its jobs"
            continue
        begun = any(job.state == JobState.RUNNING or (job.is_ended and job.started_at) for job in jobs)
        expected = RunState.RUNNING if begun else RunState.QUEUED
        assert run.is_ended or run.state == expected, f"{run} is {run.state}, its jobs say {expected}"
        check_nobody_is_left_behind(jobs)


def check_nobody_is_left_behind(jobs: list[Job]) -> None:
    """Of one attempt of a run: who could go does, and no more than may."""
    ended = {key for key in {job.key for job in jobs} if all(job.is_ended for job in jobs if job.key == key)}
    for job in jobs:
        if job.state != JobState.BLOCKED:
            continue
        if job.hold == Hold.NEEDS:
            assert not set(job.needs) <= ended, f"{job} waits for needs that have ended"
        if job.hold == Hold.MAX_PARALLEL:
            assert job.max_parallel is not None, f"{job} is held by a limit that it does not have"
            assert len(going_legs(job, jobs)) == job.max_parallel, f"{job} could go"
    for job in jobs:
        if job.max_parallel is not None:
            assert len(going_legs(job, jobs)) <= job.max_parallel, f"more legs of {job} go than may"
        if job.conclusion == "failure" and job.fail_fast and job.matrix_total > 1:
            left = [leg for leg in jobs if leg.key == job.key and not leg.is_ended and not leg.cancel_reason]
            assert not left, f"{left} goes on although {job} failed"


def going_legs(job: Job, jobs: list[Job]) -> list[Job]:
    return [leg for leg in jobs if leg.key == job.key and leg.state in GOING]


def check_groups() -> None:
    """Once the groups are settled: one goes, at most one waits, and nobody waits for an empty group."""
    for group in ConcurrencyGroup.objects.order_by("pk"):
        runs = Run.objects.filter(concurrency_group=group).exclude(state=RunState.ENDED)
        jobs = Job.objects.filter(concurrency_group=group).exclude(state=JobState.ENDED)
        held = jobs.filter(state=JobState.BLOCKED, hold=Hold.CONCURRENCY).count()
        waiting = runs.filter(state=RunState.WAITING).count() + held
        going = runs.exclude(state=RunState.WAITING).count() + jobs.filter(state__in=GOING).count()
        assert going <= 1, f"{going} go in {group} at once"
        assert waiting <= 1, f"{waiting} wait in {group}"
        assert going or not waiting, f"somebody waits in the empty {group}"


def check_runners(*, after: int = 0) -> None:
    """A single-use runner that is over has no job. One whose process died has it until its silence is noticed."""
    for job in Job.objects.filter(run__gt=after, state__in=ACTIVE_STATES).select_related("runner").order_by("pk"):
        assert job.runner is not None, f"{job} runs on nobody"
        assert job.runner.phase != RunnerPhase.SUCCEEDED, f"{job} is on {job.runner}, which is {job.runner.phase}"


def check_numbers() -> None:
    """A workflow has counted every run that it has: the next number is nobody's."""
    for workflow in Workflow.objects.annotate(highest=Max("runs__number")).exclude(highest=None).order_by("pk"):
        assert workflow.run_count >= workflow.highest, f"{workflow} counts {workflow.run_count}, #{workflow.highest} is"

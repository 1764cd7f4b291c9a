"""How does an ended run get another attempt? All jobs, the failed ones, or one; with every job that depends on them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.errors import Conflict, InvalidInput, NotFound
from ci.lifecycle.scopes import by_key, by_scope
from ci.lifecycle.transitions.create_run import enter
from ci.lifecycle.transitions.guard import check_version, guarded, lock_group, lock_run
from ci.lifecycle.transitions.moves import run_deadline, write
from ci.models import Conclusion, Hold, Job, JobState, Run, RunAttempt, RunConclusion, RunState
from ci.workflow import needs

# GitHub's limit for one run.
MAX_ATTEMPTS = 50

ALWAYS = ("run", "key", "needs", "level", "definition")
LEG = (
    "name",
    "matrix",
    "matrix_index",
    "matrix_total",
    "fail_fast",
    "max_parallel",
    "continue_on_error",
    "timeout_minutes",
    "cancel_timeout_minutes",
    "runs_on",
    "label_set",
    "call_inputs",
    "environment",
    "environment_name",
    "deploys",
    "concurrency_group",
    "cancel_in_progress",
    "queue_all",
    "called_group",
    "called_cancel_in_progress",
    "called_queue_all",
    "expanded",
)
END = (
    "state",
    "conclusion",
    "outputs",
    "end_note",
    "cancel_reason",
    "runner_name",
    "queued_at",
    "started_at",
    "ended_at",
)


@guarded
def rerun(*, run_id: int, actor: Any, mode: str = "all", job_id: int | None = None, version: int | None = None) -> Run:
    """Start the next attempt of an ended run. `mode`: "all", "failed" (or cancelled), or "job" with its `job_id`.

    Earlier attempts stay as they are. Raises NotFound, Conflict, InvalidInput.
    """
    if mode not in ("all", "failed", "job"):
        raise InvalidInput({"mode": "Say all, failed or job."})
    group_id = Run.objects.filter(pk=run_id).values_list("concurrency_group_id", flat=True).first()
    if group_id is not None:
        lock_group(group_id)
    run = lock_run(run_id)
    check_version(run, version)
    earlier = _check(run)
    again = _chosen(earlier, mode, job_id)
    _archive(run)
    _next_attempt(run, actor)
    _make_rows(run, earlier, again)
    events.record("rerun", run=run, from_state=RunState.ENDED, to_state=run.state, actor=actor, detail=mode)
    enter(run)
    return run


def _check(run: Run) -> list[Job]:
    if not run.is_ended:
        raise Conflict(f"{run} has not ended yet: cancel it first, or wait.")
    if run.conclusion == RunConclusion.STARTUP_FAILURE:
        raise Conflict(f"{run} never began, because its workflow file is wrong: push a corrected file instead.")
    if run.attempt >= MAX_ATTEMPTS:
        raise Conflict(f"{run} has had {MAX_ATTEMPTS} attempts, the most there can be.")
    return list(Job.objects.filter(run=run, attempt=run.attempt).order_by("level", "key", "matrix_index"))


def _chosen(jobs: list[Job], mode: str, job_id: int | None) -> set[int]:
    """Ids of the rows to run again themselves; their dependents, and the jobs of a call, follow from them."""
    if mode == "all":
        return {job.pk for job in jobs if job.parent_id is None}
    if mode == "job":
        if job_id not in {job.pk for job in jobs}:
            raise NotFound("There is no such job in the newest attempt of this run.")
        return {job.pk for job in jobs if job.pk == job_id}
    called = {job.parent_id for job in jobs}
    # Of a call those of its jobs that failed, unless it never came to have any.
    failed = {
        job.pk for job in jobs if job.conclusion in (Conclusion.FAILURE, Conclusion.CANCELLED) and job.pk not in called
    }
    if not failed:
        raise Conflict("No job of this run has failed or was cancelled: re-run all jobs instead.")
    return failed


def _archive(run: Run) -> None:
    RunAttempt.objects.create(
        run=run,
        number=run.attempt,
        conclusion=str(run.conclusion),
        triggered_by_name=run.triggered_by_name,
        started_at=run.started_at,
        ended_at=run.ended_at or timezone.now(),
    )


def _next_attempt(run: Run, actor: Any) -> None:
    write(
        run,
        attempt=run.attempt + 1,
        state=RunState.WAITING,
        conclusion=None,
        started_at=None,
        ended_at=None,
        cancel_reason="",
        cancel_requested_at=None,
        cancelled_by=None,
        triggered_by_name=actor.get_username(),
        entered_group_at=timezone.now(),
        deadline_at=run_deadline(),
    )


def _make_rows(run: Run, earlier: list[Job], again: set[int]) -> None:
    _make_scope(run, by_scope(earlier), again, old=None, new=None)


def _make_scope(
    run: Run, scopes: dict[int | None, list[Job]], again: set[int], *, old: Job | None, new: Job | None
) -> None:
    """The next attempt's rows of one scope: dependents of what runs again start unexpanded, chosen legs as they were,
    the rest is carried.

    With every leg of a job chosen the job is expanded anew, since what its matrix reads may have changed. A call of
    which only some jobs run again has them from the start, and waits for its concurrency group like any other.
    """
    legs = by_key(scopes.get(old.pk if old is not None else None, ()))
    whole = {key for key, group in legs.items() if all(leg.pk in again for leg in group)}
    touched = {key for key, group in legs.items() if any(_runs_again(leg, scopes, again) for leg in group)}
    ancestors = needs.ancestors({key: group[0].needs for key, group in legs.items()})
    anew = {key for key in legs if ancestors[key] & touched} | whole
    for key, group in legs.items():
        if key in anew:
            _unexpanded(run, group[0], new).save()
            continue
        for leg in group:
            row = _leg_again(run, leg) if _runs_again(leg, scopes, again) else _carried(run, leg)
            row.parent = new
            row.save()
            if leg.is_call and leg.pk not in again:
                _make_scope(run, scopes, again, old=leg, new=row)


def _runs_again(leg: Job, scopes: dict[int | None, list[Job]], again: set[int]) -> bool:
    """Itself, or of a call some job in it."""
    return leg.pk in again or any(_runs_again(inner, scopes, again) for inner in scopes.get(leg.pk, ()))


def _copy(run: Run, job: Job, names: tuple[str, ...]) -> Job:
    return Job(attempt=run.attempt, **{name: getattr(job, name) for name in ALWAYS + names})


def _unexpanded(run: Run, job: Job, parent: Job | None) -> Job:
    fresh = _copy(run, job, ())
    fresh.parent = parent
    fresh.name = str(job.definition.get("name") or job.key) if job.matrix_total > 1 else job.name
    fresh.hold = Hold.RUN
    return fresh


def _leg_again(run: Run, leg: Job) -> Job:
    fresh = _copy(run, leg, LEG)
    fresh.hold = Hold.RUN
    return fresh


def _carried(run: Run, leg: Job) -> Job:
    copy = _copy(run, leg, LEG + END)
    copy.carried_from_id = leg.carried_from_id or leg.pk
    assert copy.state == JobState.ENDED
    return copy

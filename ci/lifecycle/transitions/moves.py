"""How does a locked job or run get from one state to the next, with its version and its event?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from ci.lifecycle import events, measures
from ci.lifecycle.groups import settle_later
from ci.models import (
    ACTIVE_STATES,
    CancelReason,
    Conclusion,
    Job,
    JobState,
    Run,
    Runner,
    RunnerPhase,
    RunnerSet,
    Step,
    StepState,
)
from ci.storage import logs
from ci.workflow.storable import cleaned

# state -> the states it may be reached from. Whatever is not here is a fault of the server and raises.
ORIGINS: dict[str, frozenset[str]] = {
    JobState.QUEUED: frozenset({JobState.BLOCKED, JobState.ASSIGNED, JobState.RUNNING}),
    JobState.RUNNING: frozenset({JobState.ASSIGNED}),
    JobState.ENDED: frozenset({JobState.BLOCKED, JobState.QUEUED, JobState.ASSIGNED, JobState.RUNNING}),
}

Row = TypeVar("Row", Job, Run, Runner, RunnerSet)


class IllegalMove(Exception):
    """A transition asked for a move that the state table does not have."""


def move(job: Job, state: str, *, kind: str, actor: Any = None, detail: str = "", **fields: Any) -> None:
    """Write `state` and `fields` of a locked job, bump its version, record the event."""
    move_all([job], state, kind=kind, actor=actor, detail=detail, **fields)


def move_all(jobs: Sequence[Job], state: str, *, kind: str, actor: Any = None, detail: str = "", **fields: Any) -> None:
    """As `move`, of many jobs alike: an event each, but two statements for all of them."""
    for job in jobs:
        if job.state not in ORIGINS[state]:
            raise IllegalMove(f"job {job.pk}: {job.state} -> {state}")
    before = [job.state for job in jobs]
    write_all(jobs, state=state, hold="", **fields)
    events.record_all(
        events.event(kind, job=job, runner=job.runner, from_state=old, to_state=state, actor=actor, detail=detail)
        for job, old in zip(jobs, before, strict=True)
    )


def write(row: Row, **fields: Any) -> None:
    """Set fields of a locked row and bump its version."""
    write_all([row], **fields)


def write_all(rows: Sequence[Row], **fields: Any) -> None:
    """As `write`, of many rows of one kind."""
    if not rows:
        return
    found = type(rows[0]).objects.filter(pk__in=[row.pk for row in rows])
    found.update(version=F("version") + 1, **fields)
    for row in rows:
        for name, value in fields.items():
            setattr(row, name, value)
        row.version += 1


def queue(job: Job, *, kind: str = "queued", detail: str = "") -> None:
    """To the queue, for the first time or again, then in its old place: nothing of an earlier assignment is left."""
    now = timezone.now()
    if job.runner_id is not None:
        Step.objects.filter(job=job).delete()
        logs.begin_anew(job.pk)
    _queue([job], now, kind=kind, detail=detail)


def queue_all(jobs: Sequence[Job]) -> None:
    """To the queue, of jobs of one run that never were in it."""
    if jobs:
        _queue(jobs, timezone.now())


def _queue(jobs: Sequence[Job], now: datetime, *, kind: str = "queued", detail: str = "") -> None:
    repository, deadline = jobs[0].run.repository, now + timedelta(seconds=settings.QUEUE_SECONDS)
    move_all(
        jobs,
        JobState.QUEUED,
        kind=kind,
        detail=detail,
        queue_repository=repository.pk,
        queue_owner=repository.owner_id,
        queued_at=jobs[0].queued_at or now,
        deadline_at=deadline,
        runner=None,
        runner_name="",
        single_use=False,
        token_hash=None,
        poll_id="",
        assigned_at=None,
        started_at=None,
        outputs={},
    )
    # Scope and labels, so that only a runner that may take the job is woken.
    for label_set_id in dict.fromkeys(job.label_set_id for job in jobs):
        events.notify(events.JOB_QUEUED, f"{label_set_id}:{repository.pk}:{repository.owner_id}")
    events.tell_watch(deadline)


def end(job: Job, conclusion: str, *, kind: str = "ended", note: str = "", actor: Any = None, **fields: Any) -> None:
    """The one way a job ends. Steps that had not ended end with it; its runner is free again."""
    was_active = job.state in ACTIVE_STATES
    runner = job.runner if was_active else None
    now = timezone.now()
    move(
        job,
        JobState.ENDED,
        kind=kind,
        actor=actor,
        detail=note,
        conclusion=conclusion,
        ended_at=now,
        end_note=cleaned(note)[:1000],
        deadline_at=None,
        poll_id="",
        **fields,
    )
    if was_active:
        _end_steps(job, conclusion)
        measures.note_end(job, now)
        events.notify(events.JOB_CHANGED, job.pk)
    if runner is not None:
        free_runner(runner, job)
    for group_id in {job.concurrency_group_id, job.called_group_id}:
        if group_id is not None:
            settle_later(group_id)


def end_with_run(run: Run, job: Job) -> None:
    """Of a job that no runner has, in a run that was cancelled: it is cancelled for the same reason."""
    by = f" by {run.cancelled_by.get_username()}" if run.cancelled_by else ""
    fields = {"cancel_reason": run.cancel_reason, "cancel_requested_at": run.cancel_requested_at}
    note = f"Its run was cancelled{by}, and its condition is false now."
    end(job, Conclusion.CANCELLED, kind="cancelled", note=note, cancelled_by=run.cancelled_by, **fields)


def _end_steps(job: Job, conclusion: str) -> None:
    now = timezone.now()
    left = Step.objects.filter(job=job).exclude(state=StepState.ENDED)
    ending = Conclusion.FAILURE if conclusion == Conclusion.FAILURE else Conclusion.CANCELLED
    left.filter(state=StepState.RUNNING).update(state=StepState.ENDED, conclusion=ending, ended_at=now)
    left.filter(state=StepState.PENDING).update(state=StepState.ENDED, conclusion=Conclusion.SKIPPED)


def run_deadline() -> datetime:
    """When an attempt that begins now is ended, whatever it waits for: an approval, a group, a need, a runner."""
    return timezone.now() + timedelta(seconds=settings.RUN_SECONDS)


def ask_to_stop(job: Job, reason: CancelReason, *, actor: Any = None) -> None:
    """Of an assigned or running job: note why it shall end, tell its runner, give it the grace for its post steps."""
    now = timezone.now()
    fields: dict[str, Any] = {"cancel_reason": reason, "cancel_requested_at": now, "cancelled_by": actor}
    if job.state == JobState.RUNNING:
        fields["deadline_at"] = now + job.grace
        events.tell_watch(now + job.grace)
    write(job, **fields)
    events.record(
        "cancel_requested",
        job=job,
        runner=job.runner,
        from_state=job.state,
        to_state=job.state,
        actor=actor,
        detail=reason.label,
    )
    events.notify(events.JOB_CHANGED, job.pk)


def free_runner(runner: Runner, job: Job) -> None:
    """The job of `runner` is over. A single-use runner is over with it; another one is idle again."""
    locked = Runner.objects.select_for_update(no_key=True).filter(pk=runner.pk).first()
    if locked is None or locked.is_done:
        return
    now = timezone.now()
    if locked.ephemeral:
        write(
            locked,
            phase=RunnerPhase.SUCCEEDED,
            ready=False,
            ended_at=now,
            reason=f"Its job {job.name} has ended."[:500],
        )
        _tell_set(locked)
    elif locked.phase == RunnerPhase.RUNNING:
        write(locked, phase=RunnerPhase.PENDING)


def _tell_set(runner: Runner) -> None:
    if runner.runner_set_id is None:
        return
    events.wake_set(runner.runner_set_id)
    if RunnerSet.objects.filter(pk=runner.runner_set_id, maximum_per_repository__isnull=False).exists():
        # Its other runners were told of the jobs of this repository when they might not take them.
        events.notify(events.JOB_QUEUED, "")


def lose_runner(runner: Runner, reason: str) -> None:
    """A single-use runner that lost its assignment takes no other; another one may come back."""
    locked = Runner.objects.select_for_update(no_key=True).filter(pk=runner.pk).first()
    if locked is None or locked.is_done:
        return
    if locked.ephemeral:
        write(locked, phase=RunnerPhase.FAILED, ready=False, ended_at=timezone.now(), reason=reason[:500])
        events.record("runner_failed", runner=locked, to_state=RunnerPhase.FAILED, detail=reason)
        _tell_set(locked)
    elif locked.phase == RunnerPhase.RUNNING:
        write(locked, phase=RunnerPhase.PENDING)

"""Is the runner still at it, and shall it go on? The first heartbeat acknowledges the assignment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from ci.lifecycle import events, measures
from ci.lifecycle.errors import JobEnded
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.guard import Proof, check_token, guarded, lock_job
from ci.lifecycle.transitions.moves import move
from ci.lifecycle.transitions.runner_phase import start_runner
from ci.models import Heartbeat, Job, JobState, Run


@dataclass(frozen=True)
class HeartbeatAnswer:
    """`cancel`: why the job shall stop. `deadline`: when its time is over. `force_at`: when it is ended anyway."""

    cancel: str | None
    deadline: datetime | None
    force_at: datetime | None


@guarded
def heartbeat(*, job_id: int, token: Proof) -> HeartbeatAnswer:
    """Note that the runner lives. Raises NotFound, Unauthenticated, JobEnded; then nothing is noted."""
    run, job = lock_job(job_id)
    check_token(job, token)
    if job.is_ended:
        raise JobEnded(str(job.conclusion), job.cancel_reason)
    if job.state == JobState.ASSIGNED:
        _acknowledge(run, job)
    now = timezone.now()
    Heartbeat.objects.bulk_create(
        [Heartbeat(job=job, at=now)], update_conflicts=True, unique_fields=["job"], update_fields=["at"]
    )
    limit = job.started_at + timedelta(minutes=job.timeout_minutes) if job.started_at else None
    if job.cancel_reason:
        return HeartbeatAnswer(cancel=job.cancel_reason, deadline=limit, force_at=job.deadline_at)
    return HeartbeatAnswer(cancel=None, deadline=limit, force_at=None)


def _acknowledge(run: Run, job: Job) -> None:
    """assigned -> running: from now on the job's own time runs. The poll is forgotten: there is nothing to repeat."""
    now = timezone.now()
    # A cancel that came before the acknowledgement starts its grace now: only now is there anybody to tell.
    deadline = now + (job.grace if job.cancel_reason else timedelta(minutes=job.timeout_minutes))
    move(
        job,
        JobState.RUNNING,
        kind="acknowledged",
        started_at=now,
        poll_id="",
        deadline_at=deadline,
    )
    measures.note_start(job, now)
    if job.runner_id is not None:
        start_runner(runner_id=job.runner_id, job_id=job.pk, job_name=job.name)
    events.tell_watch(min(deadline, now + timedelta(seconds=settings.HEARTBEAT_SECONDS)))  # or its runner is lost
    advance(run)

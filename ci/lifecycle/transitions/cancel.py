"""How is a job or a run stopped by a person? What waits ends at once; what runs is asked, then forced.

In a run, a job whose `if` holds although the run was cancelled goes on; only force ends it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from ci.lifecycle.errors import Conflict
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.guard import check_version, guarded, lock_job, lock_jobs, lock_run
from ci.lifecycle.transitions.moves import end, write
from ci.lifecycle.transitions.stop_run import stop_run
from ci.lifecycle.transitions.stopping import stop
from ci.models import CancelReason, Conclusion, Job, Run


@guarded
def cancel_run(*, run_id: int, actor: Any, force: bool = False, version: int | None = None) -> int:
    """Cancel a run; returns how many jobs that stops.

    `force` ends every job at once, without post steps and whatever its `if` says. Raises NotFound, Conflict.
    """
    run = lock_run(run_id)
    check_version(run, version)
    if run.is_ended:
        raise Conflict(f"{run} had already ended with {run.get_conclusion_display()}.")
    if force:
        return _force_all(run, note=f"Ended by force by {actor.get_username()}.", actor=actor)
    if run.cancel_reason:
        raise Conflict(f"{run} has been cancelled already: what still runs ends by itself, or by a forced cancel.")
    return stop_run(run, CancelReason.OWNER, note=_note(actor), actor=actor)


@guarded
def cancel_job(*, job_id: int, actor: Any, force: bool = False, version: int | None = None) -> None:
    """Cancel one job. Raises NotFound, Conflict."""
    run, job = lock_job(job_id)
    check_version(job, version)
    if job.is_ended:
        raise Conflict(f"{job} had already ended with {job.get_conclusion_display()}.")
    if force:
        for concerned in [job, *_called_by(job, lock_jobs(run))]:
            if not concerned.is_ended:
                _force(concerned, CancelReason.OWNER, note=f"Ended by force by {actor.get_username()}.", actor=actor)
    elif job.cancel_reason:
        raise Conflict(f"{job} has been asked to stop already ({job.get_cancel_reason_display()}).")
    else:
        stop(job, CancelReason.OWNER, note=_note(actor), actor=actor)
    advance(run)


@guarded
def act_on_run_deadline(*, run_id: int) -> bool:
    """Cancel a run that is not over in time, and one that goes on after that by force; False when it was not due."""
    run = lock_run(run_id)
    now = timezone.now()
    if run.is_ended or run.deadline_at is None or run.deadline_at > now:
        return False
    note = f"The run was not over after {settings.RUN_SECONDS / 86400:g} days."
    if run.cancel_reason:
        _force_all(run, note=note, reason=CancelReason.TIME_BUDGET)
    else:
        write(run, deadline_at=now + timedelta(seconds=settings.CANCEL_GRACE_SECONDS))
        stop_run(run, CancelReason.TIME_BUDGET, note=note)
    return True


def _force_all(run: Run, *, note: str, reason: CancelReason = CancelReason.OWNER, actor: Any = None) -> int:
    left = [job for job in lock_jobs(run) if not job.is_ended]
    for job in left:
        _force(job, reason, note=note, actor=actor)
    advance(run)
    return len(left)


def _force(job: Job, reason: CancelReason, *, note: str, actor: Any) -> None:
    fields = {"cancel_reason": job.cancel_reason or reason, "cancelled_by": job.cancelled_by or actor}
    end(job, Conclusion.CANCELLED, kind="cancelled_by_force", note=note, actor=actor, **fields)


def _called_by(call: Job, jobs: list[Job]) -> list[Job]:
    """The jobs of a call, and of the calls among them."""
    inner = [job for job in jobs if job.parent_id == call.pk]
    return inner + [below for job in inner for below in _called_by(job, jobs)]


def _note(actor: Any) -> str:
    return f"Cancelled by {actor.get_username()}."

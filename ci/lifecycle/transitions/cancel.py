"""How is a job or a run stopped by a person? What waits ends at once; what runs is asked, then forced."""

from __future__ import annotations

from typing import Any

from ci.lifecycle.errors import Conflict
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.concurrency import stop_run
from ci.lifecycle.transitions.guard import check_version, guarded, lock_job, lock_jobs, lock_run
from ci.lifecycle.transitions.moves import end
from ci.lifecycle.transitions.stopping import stop
from ci.models import CancelReason, Conclusion, Job


@guarded
def cancel_run(*, run_id: int, actor: Any, force: bool = False, version: int | None = None) -> int:
    """Cancel every job that has not ended; returns how many it concerned.

    `force` ends the running ones at once, without their post steps. Raises NotFound, Conflict.
    """
    run = lock_run(run_id)
    check_version(run, version)
    if run.is_ended:
        raise Conflict(f"{run} had already ended with {run.get_conclusion_display()}.")
    if force:
        concerned = [job for job in lock_jobs(run) if not job.is_ended]
        for job in concerned:
            _force(job, actor)
        advance(run)
        return len(concerned)
    stopped = stop_run(run, CancelReason.OWNER, note=_note(actor), actor=actor)
    if not stopped:
        raise Conflict(f"Every job of {run} that runs has been asked to stop already.")
    return stopped


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
                _force(concerned, actor)
    elif job.cancel_reason:
        raise Conflict(f"{job} has been asked to stop already ({job.get_cancel_reason_display()}).")
    else:
        stop(job, CancelReason.OWNER, note=_note(actor), actor=actor)
    advance(run)


def _force(job: Job, actor: Any) -> None:
    reason = job.cancel_reason or CancelReason.OWNER
    note = f"Ended by force by {actor.get_username()}."
    fields = {"cancel_reason": reason, "cancelled_by": job.cancelled_by or actor}
    end(job, Conclusion.CANCELLED, kind="cancelled_by_force", note=note, actor=actor, **fields)


def _called_by(call: Job, jobs: list[Job]) -> list[Job]:
    """The jobs of a call, and of the calls among them."""
    inner = [job for job in jobs if job.parent_id == call.pk]
    return inner + [below for job in inner for below in _called_by(job, jobs)]


def _note(actor: Any) -> str:
    return f"Cancelled by {actor.get_username()}."

"""How does a line get into a job's log? Once, in order, by the runner that has the job, within the limit."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from ci.lifecycle.errors import LogLimit, LogOffset, NotFound
from ci.lifecycle.transitions.guard import Proof, check_token, guarded, lock_job
from ci.lifecycle.transitions.stopping import stop
from ci.models import CancelReason, Job, JobState
from ci.storage import logs


def append_log(*, job_id: int, token: Proof, offset: int, lines: Sequence[tuple[str, str]]) -> int:
    """Add lines from `offset` on; returns the offset of the line after the last.

    Repeats are clamped. Raises NotFound, Unauthenticated, LogOffset (a hole), LogLimit (full or sealed; what fitted is
    kept, and the job is told to stop in a transaction of its own, since that takes the run's lock and this the job's).
    """
    appended = _append(job_id=job_id, token=token, offset=offset, lines=lines)
    if appended.limit_reached:
        _stop_at_limit(job_id=job_id, token=token)
        raise LogLimit(appended.next_offset)
    return appended.next_offset


@guarded
def _append(*, job_id: int, token: Proof, offset: int, lines: Sequence[tuple[str, str]]) -> logs.Appended:
    # In an order of its own: the model's joins the run, and would lock it after the job.
    job = Job.objects.select_for_update(no_key=True).filter(pk=job_id).order_by("pk").first()
    if job is None:
        raise NotFound("There is no such job; its run may have been deleted.")
    check_token(job, token)
    try:
        return logs.append(
            job_id=job.pk,
            offset=offset,
            lines=lines,
            max_lines=settings.LOG_LIMIT_LINES,
            max_bytes=settings.LOG_LIMIT_BYTES,
        )
    except logs.LogHole as hole:
        raise LogOffset(hole.next_offset) from None
    except logs.LogSealed as sealed:
        raise LogLimit(sealed.next_offset, "The log is sealed: its job has ended.") from None


@guarded
def _stop_at_limit(*, job_id: int, token: Proof) -> None:
    _, job = lock_job(job_id)
    check_token(job, token)
    if job.state == JobState.RUNNING and not job.cancel_reason:
        stop(job, CancelReason.LOG_LIMIT, note="Its log reached the limit.")

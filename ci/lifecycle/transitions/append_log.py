"""How does a line get into a job's log? Once, in order, by the runner that has the job, within the limit."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import connection

from ci.lifecycle.errors import LogLimit, LogOffset, NotFound
from ci.lifecycle.transitions.guard import Held, Proof, check_token, guarded, lock_job
from ci.lifecycle.transitions.stopping import stop
from ci.models import CancelReason, JobState
from ci.storage import logs

_LOCK_HOLDER = 'SELECT token_hash, runner_id, assignment FROM "ci_job" WHERE id = %s FOR NO KEY UPDATE'


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
    holder = _lock_holder(job_id)
    check_token(holder, token)
    try:
        return logs.append(
            job_id=job_id,
            offset=offset,
            lines=lines,
            max_lines=settings.LOG_LIMIT_LINES,
            max_bytes=settings.LOG_LIMIT_BYTES,
        )
    except logs.LogHole as hole:
        raise LogOffset(hole.next_offset) from None
    except logs.LogSealed as sealed:
        raise LogLimit(sealed.next_offset, "The log is sealed: its job has ended.") from None


def _lock_holder(job_id: int) -> Held:
    """Who may write, with the job's lock held: no more of the row is read, as this is done for every few lines."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_HOLDER, [job_id])
        row = cursor.fetchone()
    if row is None:
        raise NotFound("There is no such job; its run may have been deleted.")
    return Held(*row)


@guarded
def _stop_at_limit(*, job_id: int, token: Proof) -> None:
    _, job = lock_job(job_id)
    check_token(job, token)
    if job.state == JobState.RUNNING and not job.cancel_reason:
        stop(job, CancelReason.LOG_LIMIT, note="Its log reached the limit.")

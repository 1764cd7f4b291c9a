"""How do a task's lines come into its job's log? Each runner counts from 0, where its own assignment began."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from django.conf import settings

from ci.interop.connect import Call
from ci.interop.connect_errors import ConnectError
from ci.interop.protocol import runner_pb2 as pb
from ci.interop.runner_service.callers import caller
from ci.interop.runner_service.log_marks import marked
from ci.interop.runner_service.stale import check_held_before
from ci.interop.runner_service.task_ids import job_and_holder
from ci.lifecycle.errors import JobEnded, LogLimit, LogOffset, NotFound, Unauthenticated
from ci.lifecycle.transitions import Holder, append_log, heartbeat, seal_log
from ci.models import Job, JobState, Runner
from ci.storage import logs
from ci.waiting.process import current

# A page that shows one line reads the piece that it came in.
_PIECE_LINES = 4000
_PIECE_BYTES = 1024 * 1024
_LARGEST_INDEX = 2**31 - 1

Lines = list[tuple[str, str]]


async def update_log(call: Call, request: pb.UpdateLogRequest) -> pb.UpdateLogResponse:
    return await current().beat(_update, caller(call), request)


def _update(runner: Runner, request: pb.UpdateLogRequest) -> pb.UpdateLogResponse:
    job_id, holder = job_and_holder(request.task_id, runner)
    if request.index < 0:
        raise ConnectError("invalid_argument", "The index of a line is not negative.")
    job = Job.objects.filter(pk=job_id).only("state", "runner", "assignment").first()
    if job is None:
        raise NotFound("There is no such task; its run may have been deleted.")
    try:
        length = _length_after(job, holder, request)
    except Unauthenticated:
        check_held_before(job_id, holder)
        raise ConnectError("aborted", "The task was taken back from this runner: nothing more is logged.") from None
    # Older runners panic where more is acknowledged than they have sent.
    return pb.UpdateLogResponse(ack_index=min(length, request.index + len(request.rows)))


def _length_after(job: Job, holder: Holder, request: pb.UpdateLogRequest) -> int:
    """How many lines of this assignment there are then. Raises Unauthenticated, NotFound, ConnectError."""
    if (job.runner_id, job.assignment) != (holder.runner_id, holder.assignment):
        raise Unauthenticated()
    if job.state == JobState.ASSIGNED:
        _acknowledge(job.pk, holder)
    base, lines = logs.extent(job.pk)
    length = _append(job.pk, holder, base, lines - base, request)
    # Not over a hole: the runner is told where the log stands, and may still have what is missing.
    if request.no_more and length >= request.index + len(request.rows):
        seal_log(job_id=job.pk, token=holder)
    return length


def _acknowledge(job_id: int, holder: Holder) -> None:
    with contextlib.suppress(JobEnded):  # between the look and the lock: its lines are welcome all the same
        heartbeat(job_id=job_id, token=holder)


def _append(job_id: int, holder: Holder, base: int, length: int, request: pb.UpdateLogRequest) -> int:
    end = request.index + len(request.rows)
    if end <= length or end > _LARGEST_INDEX:
        return length
    if request.index > length:
        # What is missing in between was dropped, or never came.
        return end if _is_full(job_id) else length
    new = islice(request.rows, length - request.index, None)  # a slice would make an object of each at once
    try:
        for first, lines in _pieces(new, length):
            length = append_log(job_id=job_id, token=holder, offset=base + first, lines=lines) - base
    except LogOffset as hole:
        return hole.next_offset - base
    except LogLimit as full:
        if logs.is_sealed(job_id):
            raise ConnectError("already_exists", full.detail) from None
        # The job is being stopped for it. Its runner is to end, not to offer the rest again and again.
        return end
    return length


def _is_full(job_id: int) -> bool:
    return logs.is_full(job_id, max_lines=settings.LOG_LIMIT_LINES, max_bytes=settings.LOG_LIMIT_BYTES)


def _pieces(rows: Iterable[pb.LogRow], first: int) -> Iterator[tuple[int, Lines]]:
    """The lines in pieces of bounded size, each with the number of its first."""
    piece: Lines = []
    size = 0
    for row in rows:
        piece.append((_time(row), marked(row.content)))
        size += len(row.content)
        if len(piece) >= _PIECE_LINES or size >= _PIECE_BYTES:
            yield first, piece
            first += len(piece)
            piece, size = [], 0
    if piece:
        yield first, piece


def _time(row: pb.LogRow) -> str:
    try:
        if row.HasField("time"):
            return row.time.ToJsonString()
    except ValueError:
        pass  # no time that a calendar has
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

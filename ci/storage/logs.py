"""Where are a job's log lines? In compressed rows while it runs, in one file after the end; readers need not know."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import zstandard
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from ci.models import Log, LogChunk
from ci.storage import files, log_blobs
from ci.storage.log_lines import (
    CUT_MARK,
    MAX_LINE_BYTES,
    MAX_TIME_LENGTH,
    LogLine,
    compress,
    decode_lines,
    decompress,
    encode_line,
    texts_only,
)

__all__ = [
    "Appended",
    "LogHole",
    "LogLine",
    "LogLost",
    "LogSealed",
    "append",
    "begin_anew",
    "delete",
    "extent",
    "is_full",
    "is_sealed",
    "length",
    "lines",
    "merge",
    "raw",
    "seal",
]

MOST_LINES_A_READ = 10_000
_ATTEMPTS = 5
# Ends the recorded name of a file that is not yet, or not certainly, complete: the rows are still the log then.
_UNFINISHED = ".part"


@dataclass(frozen=True)
class Appended:
    """`wrote` counts new lines only; `limit_reached`: lines were left out because the log is full."""

    next_offset: int
    limit_reached: bool
    wrote: int


class LogHole(Exception):
    """Lines between next_offset and the offset given are missing."""

    def __init__(self, next_offset: int) -> None:
        super().__init__(f"The log continues at line {next_offset}.")
        self.next_offset = next_offset


class LogSealed(Exception):
    """The log is closed for new lines."""

    def __init__(self, next_offset: int) -> None:
        super().__init__(f"The log was closed after {next_offset} lines.")
        self.next_offset = next_offset


class LogLost(Exception):
    """The file of a merged log is missing or damaged; the message says which."""


# The size moves only if it is still what the caller believed, and the chunk goes in only if the size moved: one
# statement, so neither two writers nor a crash between the two can lose or double a line.
_APPEND = """
    WITH moved AS (
        UPDATE ci_log SET lines = lines + %(count)s, size = size + %(size)s
        WHERE job_id = %(job)s AND lines = %(offset)s AND sealed_at IS NULL
          AND lines + %(count)s <= %(max_lines)s AND size + %(size)s <= %(max_bytes)s
        RETURNING lines
    )
    INSERT INTO ci_logchunk (job_id, first_line, line_count, data)
    SELECT %(job)s, lines - %(count)s, %(count)s, %(data)s FROM moved
    RETURNING first_line + line_count
"""


class Extent(NamedTuple):
    """`base`: the number of the current assignment's first line. `lines`: that of the line after the last."""

    base: int
    lines: int


class _State(NamedTuple):
    lines: int
    size: int
    sealed: bool


def append(*, job_id: int, offset: int, lines: Sequence[tuple[str, str]], max_lines: int, max_bytes: int) -> Appended:
    """Add (ISO time, text) lines at line `offset`, in the caller's transaction; those already there are skipped.

    `max_bytes` counts before compression. Raises LogHole, LogSealed; ValueError for a negative offset.
    """
    if offset < 0:
        raise ValueError("An offset is not negative.")
    encoded = [encode_line(time, text) for time, text in lines]
    if offset == 0:
        _begin(job_id)
    full = False
    for _ in range(_ATTEMPTS):
        if encoded:
            end = _insert(job_id, offset, encoded, max_lines, max_bytes)
            if end is not None:
                return Appended(end, full, len(encoded))
        state = _state(job_id)
        if offset > state.lines:
            raise LogHole(state.lines)
        encoded = encoded[state.lines - offset :]
        offset = state.lines
        if not encoded:
            return Appended(state.lines, full, 0)
        if state.sealed:
            raise LogSealed(state.lines)
        fitting = _fitting(encoded, max_lines - state.lines, max_bytes - state.size)
        full = len(fitting) < len(encoded)
        encoded = fitting
        if full and not fitting:
            return Appended(state.lines, True, 0)
    raise RuntimeError(f"The log of job {job_id} was moved by others {_ATTEMPTS} times in a row.")


def _insert(job_id: int, offset: int, encoded: Sequence[bytes], max_lines: int, max_bytes: int) -> int | None:
    size = sum(map(len, encoded))
    if size > max_bytes or len(encoded) > max_lines:
        return None  # spares compressing what cannot be stored
    values: dict[str, int | bytes] = {
        "job": job_id,
        "offset": offset,
        "count": len(encoded),
        "size": size,
        "data": compress(encoded),
        "max_lines": max_lines,
        "max_bytes": max_bytes,
    }
    with connection.cursor() as cursor:
        cursor.execute(_APPEND, values)
        row = cursor.fetchone()
    return row[0] if row else None


def _begin(job_id: int) -> None:
    """Make the log's row, unless it is there."""
    Log.objects.bulk_create([Log(job_id=job_id)], ignore_conflicts=True)


def _state(job_id: int) -> _State:
    """What the log holds now; its row is made when this is the first anyone hears of it."""
    _begin(job_id)
    lines, size, sealed_at = Log.objects.values_list("lines", "size", "sealed_at").get(pk=job_id)
    return _State(lines, size, sealed_at is not None)


def _fitting(encoded: list[bytes], free_lines: int, free_bytes: int) -> list[bytes]:
    taken = 0
    for count, line in enumerate(encoded[: max(0, free_lines)]):
        taken += len(line)
        if taken > free_bytes:
            return encoded[:count]
    return encoded[: max(0, free_lines)]


def length(job_id: int) -> int:
    """The number of lines, which is the offset of the next."""
    return Log.objects.filter(pk=job_id).values_list("lines", flat=True).first() or 0


def extent(job_id: int) -> Extent:
    """Where the lines of the current assignment begin and end."""
    found = Log.objects.filter(pk=job_id).values_list("base", "lines").first()
    return Extent(*found) if found else Extent(0, 0)


def is_full(job_id: int, *, max_lines: int, max_bytes: int) -> bool:
    """Whether another line of any length may not fit under these limits."""
    longest = MAX_LINE_BYTES + MAX_TIME_LENGTH + len(CUT_MARK.encode()) + 2
    return Log.objects.filter(Q(lines__gte=max_lines) | Q(size__gt=max_bytes - longest), pk=job_id).exists()


def begin_anew(job_id: int) -> None:
    """The job goes to another runner, which writes below what there is, also where the one before had closed the log.

    In the caller's transaction, which holds the job's lock: no line comes in between.
    """
    Log.objects.filter(pk=job_id).update(base=F("lines"), sealed_at=None)


def is_sealed(job_id: int) -> bool:
    return Log.objects.filter(pk=job_id, sealed_at__isnull=False).exists()


def lines(job_id: int, first: int, count: int) -> list[LogLine]:
    """At most `count` lines (and MOST_LINES_A_READ) from line `first` on. Raises LogLost."""
    first = max(0, first)
    last = first + min(count, MOST_LINES_A_READ)
    result: list[LogLine] = []
    if first >= last:
        return result
    for number, block in _blocks(job_id, first):
        if number >= last:
            break
        found = decode_lines(block, first_line=number)
        result += found[: last - number]
        if number + len(found) >= last:
            break
    return result


def raw(job_id: int, timestamps: bool = False) -> Iterator[bytes]:
    """The whole log as UTF-8 text in pieces of bounded size; `timestamps`: each line after its time. Raises LogLost."""
    for _, block in _blocks(job_id, 0):
        yield _stamped(block) if timestamps else texts_only(block)


def _stamped(block: bytes) -> bytes:
    return b"".join(line.replace(b"\t", b" ", 1) + b"\n" for line in block.split(b"\n")[:-1])


def _blocks(job_id: int, first: int) -> Iterator[tuple[int, bytes]]:
    """(number of its first line, decompressed block) of all lines from `first` on, without gap or overlap.

    A merge may delete the rows while they are read: the file, complete by then, has the rest.
    """
    while True:
        chunk = LogChunk.objects.filter(job_id=job_id, first_line__lte=first).order_by("-first_line").first()
        if chunk is None or chunk.first_line + chunk.line_count <= first:
            break
        yield first, _after(_decompressed(job_id, bytes(chunk.data)), first - chunk.first_line)
        first = chunk.first_line + chunk.line_count
    blob = Log.objects.filter(pk=job_id, lines__gt=first).values_list("blob", flat=True).first()
    if blob and _is_whole(blob):
        yield from _blob_blocks(job_id, blob, first)


def _blob_blocks(job_id: int, blob: str, first: int) -> Iterator[tuple[int, bytes]]:
    try:
        for number, block in log_blobs.read(blob, first_line=first):
            yield max(number, first), _after(block, first - number)
    except FileNotFoundError as error:
        raise LogLost(f"The log of job {job_id} is no longer in the storage (file {blob}).") from error
    except (log_blobs.BlobDamaged, zstandard.ZstdError) as error:
        raise LogLost(f"The log of job {job_id} is damaged (file {blob}: {error}).") from error


def _after(block: bytes, count: int) -> bytes:
    """The block without its first `count` lines."""
    return block.split(b"\n", count)[-1] if count > 0 else block


def _decompressed(job_id: int, data: bytes) -> bytes:
    try:
        return decompress(data)
    except zstandard.ZstdError as error:
        raise LogLost(f"The log of job {job_id} is damaged ({error}).") from error


def _is_whole(blob: str) -> bool:
    return blob != "" and not blob.endswith(_UNFINISHED)


def seal(job_id: int) -> None:
    """Close the log for new lines, in the caller's transaction; a repeat changes nothing."""
    _state(job_id)
    Log.objects.filter(pk=job_id, sealed_at=None).update(sealed_at=Now())


def merge(job_id: int) -> None:
    """Move a sealed log's rows into one file; an open log, an empty one and one already moved stay as they are.

    Safe to repeat, to kill at any point, and to run twice at once: the rows stay until the file is on the disk and
    this call's own name for it is the one recorded. Must not run inside a transaction, whose rollback would bring back
    the rows but not undo the file. Raises LogLost when a row is damaged.
    """
    log = Log.objects.filter(pk=job_id, sealed_at__isnull=False).first()
    if log is None or log.lines == 0 or _is_whole(log.blob):
        return
    name = f"logs/{job_id // 1000}/{job_id}-{secrets.token_hex(4)}.zst"
    # The name goes first: a file that a killed merge left behind is then known, and the next one removes it.
    if not Log.objects.filter(pk=job_id, blob=log.blob).update(blob=name + _UNFINISHED):
        return
    if log.blob:
        default_storage.delete(log.blob.removesuffix(_UNFINISHED))
    with tempfile.SpooledTemporaryFile(max_size=4 * 1024 * 1024) as target:
        written = log_blobs.write(target, (block for _, block in _blocks(job_id, 0)))
        if written != log.lines:
            return  # another merge was faster and has taken the rows; its file is the recorded one
        target.seek(0)
        stored = files.save(name, target)
    with transaction.atomic():
        mine = Log.objects.filter(pk=job_id, blob=name + _UNFINISHED).update(blob=stored)
        if mine:
            LogChunk.objects.filter(job_id=job_id).delete()
    if not mine:
        default_storage.delete(stored)


def delete(job_id: int) -> None:
    """Remove the log; its file goes once the caller's transaction is committed."""
    with transaction.atomic():
        blob = Log.objects.filter(pk=job_id).values_list("blob", flat=True).first()
        LogChunk.objects.filter(job_id=job_id).delete()
        Log.objects.filter(pk=job_id).delete()
        if blob:
            transaction.on_commit(lambda: default_storage.delete(blob.removesuffix(_UNFINISHED)))

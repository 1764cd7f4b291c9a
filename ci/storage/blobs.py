"""How does a blob come to be, block by block, and how is it read? A part is one file; the commit copies nothing.

Rows and files cannot change as one, so files come first and go last: a file without a row is an orphan that a sweep
removes (ci/storage/blob_orphans.py), a row without a file never happens. Every change of a blob holds the lock of its
row, the last lock of all: whoever holds it takes nothing but further blobs', and those in the order of their ids.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import BinaryIO, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from ci.models import Blob, BlobPart
from ci.storage import files
from ci.storage.blob_errors import (
    BlobCommitted,
    BlobError,
    BlobLost,
    BlobMissing,
    BlobTooLarge,
    BlockMissing,
    BlockRepeated,
    PutTooSlow,
    SizeDiffers,
)

__all__ = [
    "BlobCommitted",
    "BlobError",
    "BlobLost",
    "BlobMissing",
    "BlobTooLarge",
    "BlockMissing",
    "BlockRepeated",
    "PutTooSlow",
    "SizeDiffers",
    "commit",
    "commit_all",
    "create",
    "discard",
    "discard_all",
    "offset_id",
    "put_part",
    "put_whole",
    "read",
]

FOLDER = "parts"
# Azure's: https://learn.microsoft.com/rest/api/storageservices/put-block-list
MOST_PARTS = 50_000
# A file is an orphan when no row names it long after this: so its row must have been written within it.
PUT_TIME = timedelta(minutes=30)
# No block id that a client chooses: those are base64.
_WHOLE = "(whole)"

_ORDER = """
    UPDATE ci_blobpart SET position = listed.number - 1
    FROM unnest(%(ids)s::text[]) WITH ORDINALITY AS listed (block_id, number)
    WHERE ci_blobpart.blob_id = %(blob)s AND ci_blobpart.block_id = listed.block_id
"""


def create(*, content_type: str = "", content_encoding: str = "") -> Blob:
    """A blob without bytes. Its owner is stored in the same transaction, or within an hour, or a sweep takes it."""
    return Blob.objects.create(content_type=content_type, content_encoding=content_encoding)


def offset_id(offset: int) -> str:
    """The block id of bytes that begin at `offset`, for clients that name none; `commit_all` joins such parts."""
    return f"{offset:020d}"


def put_part(*, blob: Blob, block_id: str, source: BinaryIO, size: int) -> BlobPart:
    """Store `source`, of `size` bytes, as the block `block_id`; one of that id put before is replaced.

    After the commit a repeat of a block that is part of it changes nothing.
    Raises BlobMissing, BlobCommitted, BlobTooLarge; PutTooSlow, after which the same call may succeed.
    """
    if size > settings.BLOB_PART_BYTES:
        raise BlobTooLarge("block", settings.BLOB_PART_BYTES)
    if known := _repeated(blob, block_id, size):
        return known
    began = timezone.now()
    name = files.save(f"{FOLDER}/{blob.key.hex[:2]}/{blob.key.hex}-{secrets.token_hex(8)}", source)
    try:
        with transaction.atomic():
            part = _record(blob, block_id, name, size)
            if timezone.now() - began > PUT_TIME:
                raise PutTooSlow
    except BlobError:
        files.delete([name])
        raise  # after any other error it is not known whether the row is there: the sweep will know
    return part


def put_whole(*, blob: Blob, source: BinaryIO, size: int, content_type: str | None = None) -> Blob:
    """Store `source` as all there is of the blob, and commit it. Raises what `put_part` and `commit` do."""
    put_part(blob=blob, block_id=_WHOLE, source=source, size=size)
    return commit(blob=blob, block_ids=[_WHOLE], content_type=content_type)


def _repeated(blob: Blob, block_id: str, size: int) -> BlobPart | None:
    """The block as the commit has it, None before the commit. Raises BlobMissing, BlobCommitted."""
    now = Blob.objects.filter(pk=blob.pk).first()
    if now is None:
        raise BlobMissing
    if now.committed_at is None:
        return None
    part = now.parts.filter(block_id=block_id, size=size).first()
    if part is None:
        raise BlobCommitted
    return part


def _record(blob: Blob, block_id: str, name: str, size: int) -> BlobPart:
    locked = _lock(blob)
    if known := _repeated(blob, block_id, size):
        files.delete_after_commit([name])
        return known
    part = blob.parts.filter(block_id=block_id).first() or BlobPart(blob_id=blob.pk, block_id=block_id, size=0)
    locked.put_size += size - part.size
    locked.put_count += part.pk is None
    if locked.put_size > settings.BLOB_BYTES:
        raise BlobTooLarge("blob", settings.BLOB_BYTES)
    if locked.put_count > MOST_PARTS:
        raise BlobTooLarge("number of blocks", MOST_PARTS)
    if part.file:
        files.delete_after_commit([part.file])
    part.file, part.size, part.created_at = name, size, timezone.now()
    part.save()
    locked.save(update_fields=["put_size", "put_count"])
    return part


def _lock(blob: Blob) -> Blob:
    locked = Blob.objects.select_for_update(no_key=True).filter(pk=blob.pk).first()
    if locked is None:
        raise BlobMissing
    return locked


def commit(*, blob: Blob, block_ids: Sequence[str], content_type: str | None = None) -> Blob:
    """Make the blob of these blocks, in this order; others are dropped. A repeat with the same list changes nothing.

    Raises BlobMissing, BlobCommitted (with another list), BlockMissing, BlockRepeated: nothing has changed then.
    """
    with transaction.atomic():
        locked = _lock(blob)
        return _join(locked, list(block_ids), content_type)


def commit_all(*, blob: Blob, size: int | None = None) -> Blob:
    """Make the blob of all its blocks, which are named by `offset_id` and must leave neither hole nor overlap.

    Raises BlobMissing; BlockMissing with the offsets where blocks should begin, SizeDiffers: nothing has changed then.
    """
    with transaction.atomic():
        locked = _lock(blob)
        # Sorted here: the database's order of texts is a matter of its locale.
        parts = sorted(locked.parts.values_list("block_id", "size"))
        end = 0
        for block_id, length in parts:
            if block_id != offset_id(end):
                raise BlockMissing([offset_id(end)])
            end += length
        if size is not None and size != end:
            raise SizeDiffers(expected=size, found=end)
        return _join(locked, [block_id for block_id, _ in parts], None)


def _join(locked: Blob, block_ids: list[str], content_type: str | None) -> Blob:
    if locked.committed_at is not None:
        if block_ids != list(locked.parts.order_by("position").values_list("block_id", flat=True)):
            raise BlobCommitted
        return locked
    parts = {part.block_id: part for part in locked.parts.all()}
    if missing := [block_id for block_id in block_ids if block_id not in parts]:
        raise BlockMissing(missing)
    kept = set(block_ids)
    if len(kept) != len(block_ids):
        raise BlockRepeated
    with connection.cursor() as cursor:
        cursor.execute(_ORDER, {"ids": block_ids, "blob": locked.pk})
    files.delete_after_commit(part.file for block_id, part in parts.items() if block_id not in kept)
    locked.parts.filter(position=None).delete()
    locked.size = locked.put_size = sum(parts[block_id].size for block_id in block_ids)
    locked.put_count = len(block_ids)
    locked.committed_at = timezone.now()
    if content_type is not None:
        locked.content_type = content_type
    locked.save(update_fields=["size", "put_size", "put_count", "committed_at", "content_type"])
    return locked


class _Stretch(NamedTuple):
    """What is wanted of one part's file, in bytes."""

    file: str
    start: int
    end: int


def read(blob: Blob, *, start: int = 0, end: int | None = None) -> Generator[bytes, None, None]:
    """The bytes from `start` to before `end` in pieces of at most 256 KiB; of the database, nothing while iterating.

    Raises BlobMissing where it is gone or not committed; BlobLost, while iterating, where the storage lost bytes.
    """
    now = Blob.objects.filter(pk=blob.pk, committed_at__isnull=False).first()
    if now is None or now.size is None:
        raise BlobMissing
    parts = now.parts.order_by("position").values_list("file", "size")
    return _pieces(list(_stretches(parts, max(0, start), now.size if end is None else min(end, now.size))))


def _stretches(parts: Iterable[tuple[str, int]], start: int, end: int) -> Iterator[_Stretch]:
    begin = 0
    for file, size in parts:
        first, last = max(start, begin), min(end, begin + size)
        if first < last:
            yield _Stretch(file, first - begin, last - begin)
        begin += size


def _pieces(stretches: list[_Stretch]) -> Generator[bytes, None, None]:
    for stretch in stretches:
        try:
            yield from files.pieces(stretch.file, start=stretch.start, end=stretch.end)
        except (FileNotFoundError, EOFError) as error:
            raise BlobLost(f"Bytes are missing in the storage: {error}") from error


def discard(blob: Blob) -> None:
    """Remove the rows in the caller's transaction, the files once it is committed; a repeat changes nothing.

    Raises django.db.models.ProtectedError while something owns the blob: delete that first.
    """
    discard_all([blob])


def discard_all(doomed: Sequence[Blob]) -> None:
    """As `discard`, in few statements however many there are."""
    with transaction.atomic():
        locked = Blob.objects.select_for_update().filter(pk__in=[blob.pk for blob in doomed]).order_by("pk")
        found = [blob.pk for blob in locked]
        names = list(BlobPart.objects.filter(blob__in=found).values_list("file", flat=True))
        Blob.objects.filter(pk__in=found).delete()
        files.delete_after_commit(names)

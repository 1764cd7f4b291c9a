"""Which blobs, parts and files does nobody want any more? Owners go without them, and uploads end half way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Max, ProtectedError, Q, QuerySet
from django.utils import timezone

from ci.models import Blob, BlobPart
from ci.storage import blobs, files

# An owner is stored with its blob, or soon after.
UNOWNED_FOR = timedelta(hours=1)
# No part came for so long: its job is over, or has given up.
UNFINISHED_FOR = timedelta(days=1)
# The row of a file is written within PUT_TIME, so no row will ever name a file that is older; clocks may differ a bit.
UNNAMED_FOR = 2 * blobs.PUT_TIME
# The files are looked through in so many turns, for there may be very many.
TURNS = 24
_SHARDS = 256
_BATCH = 500


def remove_orphans(*, most: int = 10_000) -> int:
    """Discard blobs without an owner, and the parts of uploads that stopped; how many blobs there were.

    At most `most` at once. Safe to repeat, to kill, and to run twice at once.
    """
    now = timezone.now()
    return _discard_unowned(now - UNOWNED_FOR, most) + _empty_unfinished(now - UNFINISHED_FOR, most)


def _discard_unowned(before: datetime, most: int) -> int:
    unowned = Blob.objects.filter(artifact=None, artifact_file=None, cache_entry=None, created_at__lt=before)
    unowned = unowned.filter(Q(committed_at=None) | Q(committed_at__lt=before))
    removed = 0
    for blob in _oldest(unowned, most):
        try:
            blobs.discard(blob)
        except ProtectedError:
            continue  # it has found an owner meanwhile
        removed += 1
    return removed


def _empty_unfinished(before: datetime, most: int) -> int:
    """A blob that has an owner stays as a row: its commit will then miss the blocks, and say so."""
    unfinished = Blob.objects.filter(committed_at=None, created_at__lt=before, parts__isnull=False).distinct()
    return sum(_empty(blob, before) for blob in _oldest(unfinished, most))


@transaction.atomic
def _empty(blob: Blob, before: datetime) -> bool:
    locked = Blob.objects.select_for_update(no_key=True).filter(pk=blob.pk, committed_at=None).first()
    if locked is None:
        return False
    newest = locked.parts.aggregate(newest=Max("created_at"))["newest"]
    if newest is None or newest >= before:
        return False
    files.delete_after_commit(locked.parts.values_list("file", flat=True))
    locked.parts.all().delete()
    return True


def _oldest(found: QuerySet[Blob], most: int) -> Iterator[Blob]:
    yield from list(found.order_by("id")[:most])


def remove_orphaned_files(*, turn: int | None = None, most: int = 10_000) -> int:
    """Delete files that no part names; how many there were. `turn` of TURNS looks at its share of them, None at all."""
    removed = 0
    for names in _batches(turn):
        named = set(BlobPart.objects.filter(file__in=names).values_list("file", flat=True))
        for name in names:
            if removed >= most:
                return removed
            if name not in named:
                removed += _remove(name)
    return removed


def _batches(turn: int | None) -> Iterator[list[str]]:
    for number in range(_SHARDS):
        if turn is not None and number % TURNS != turn % TURNS:
            continue
        folder = f"{blobs.FOLDER}/{number:02x}"
        try:
            found = [f"{folder}/{name}" for name in default_storage.listdir(folder)[1]]
        except FileNotFoundError:
            continue
        for start in range(0, len(found), _BATCH):
            yield found[start : start + _BATCH]


def _remove(name: str) -> int:
    try:
        if default_storage.get_modified_time(name) > timezone.now() - UNNAMED_FOR:
            return 0
    except FileNotFoundError:
        return 0  # another sweep was faster
    files.delete([name])
    return 1

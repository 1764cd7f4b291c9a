"""How does what a job uploaded become a cache that others find? All of it, or not at all."""

from __future__ import annotations

from django.utils import timezone

from ci.lifecycle.caches.evict import make_room
from ci.lifecycle.caches.keys import check_key, check_version
from ci.lifecycle.caches.locking import lock_caches
from ci.lifecycle.caches.quota import check_fits
from ci.lifecycle.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from ci.lifecycle.runtime_tokens import lock_caller
from ci.lifecycle.transitions.guard import guarded
from ci.models import Blob, CacheEntry, Job
from ci.storage import blobs

_NOT_RESERVED = "This job has reserved no such cache; its reservation may have been dropped. Reserve it first."


@guarded
def commit_cache(*, job: Job, size: int, entry_id: int | None = None, key: str = "", version: str = "") -> CacheEntry:
    """Show others what was uploaded; what was used longest ago goes where there is no room for all. `size`: in bytes.

    By `entry_id` (protocol v1) the parts are joined in the order of their offsets; by `key` and `version` (v2) the
    client has committed the blob itself. A repeat changes nothing.
    Raises InvalidInput, NotFound, AlreadyExists, Conflict (not uploaded), Unauthenticated, JobEnded.
    """
    if entry_id is None:
        check_key(key)
        check_version(version)
    repository = lock_caches(job.run.repository_id)
    lock_caller(job)
    entry = reservation(job=job, entry_id=entry_id, key=key, version=version)
    if entry.finalized_at is not None:
        if entry.size != size:
            raise AlreadyExists(f"The cache {entry.key} is committed with {entry.size} bytes.")
        return entry
    check_fits(size, repository)
    if entry_id is None:
        _check_arrived(entry.blob, size)
    else:
        _join(entry.blob, size)
    now = timezone.now()
    entry.size, entry.finalized_at, entry.last_used_at = size, now, now
    entry.save(update_fields=["size", "finalized_at", "last_used_at"])
    make_room(repository, keep=entry)
    return entry


def reservation(*, job: Job, entry_id: int | None = None, key: str = "", version: str = "") -> CacheEntry:
    """What this job has reserved, committed or not. Raises NotFound."""
    rows = CacheEntry.objects.select_related("blob").filter(repository=job.run.repository_id, job=job)
    if entry_id is not None:
        found = rows.filter(pk=entry_id).first()
    else:
        found = rows.filter(version=version, key=key, ref=job.run.ref).order_by("pk").first()
    if found is None:
        raise NotFound(_NOT_RESERVED)
    return found


def _join(blob: Blob, size: int) -> None:
    """Raises InvalidInput, NotFound."""
    try:
        blobs.commit_all(blob=blob, size=size)
    except blobs.BlockMissing:
        raise InvalidInput({"size": "Parts of the upload are missing or overlap: send each byte once."}) from None
    except blobs.SizeDiffers as error:
        raise _size_differs(size, error.found) from None
    except blobs.BlobMissing:
        raise NotFound(_NOT_RESERVED) from None


def _check_arrived(blob: Blob, size: int) -> None:
    """Raises Conflict, InvalidInput."""
    if blob.size is None:
        raise Conflict("The upload is not complete: commit its blocks at the upload URL first.")
    if blob.size != size:
        raise _size_differs(size, blob.size)


def _size_differs(said: int, found: int) -> InvalidInput:
    return InvalidInput({"size": f"{said} bytes are said to be there, and {found} were uploaded."})

"""How does a job say that it will keep something? It gets a key for itself, until it has committed or ended."""

from __future__ import annotations

from ci.lifecycle.caches.keys import check_key, check_version
from ci.lifecycle.caches.locking import lock_caches, remove
from ci.lifecycle.caches.quota import check_fits
from ci.lifecycle.caches.scopes import writable_scope
from ci.lifecycle.errors import AlreadyExists, Conflict
from ci.lifecycle.runtime_tokens import lock_caller
from ci.lifecycle.transitions.guard import guarded
from ci.models import ACTIVE_STATES, CacheEntry, Job
from ci.storage import blobs
from forge.models import Repository

# Uploads that a job has begun and not committed; each may hold bytes that no quota counts yet.
MAX_OPEN = 20


@guarded
def reserve_cache(*, job: Job, key: str, version: str, size: int | None = None) -> CacheEntry:
    """An entry with an empty blob to upload to, in the scope of the job's run. `size`: in bytes, where it is known yet.

    A reservation of a job that has ended is taken over; one of the job's own starts anew.
    Raises InvalidInput, NotAllowed, AlreadyExists, Conflict (too many at once), Unauthenticated, JobEnded.
    """
    check_key(key)
    check_version(version)
    repository = lock_caches(job.run.repository_id)
    lock_caller(job)
    ref = writable_scope(job.run, repository)
    if size is not None:
        check_fits(size, repository)
    found = _entry(repository, ref, key, version)
    if found is not None:
        _check_free(found, job)
        remove([found])
    if CacheEntry.objects.filter(repository=repository, job=job, finalized_at=None).count() >= MAX_OPEN:
        raise Conflict(f"The job has begun {MAX_OPEN} caches and committed none of them: commit one first.")
    return CacheEntry.objects.create(
        repository=repository, job=job, ref=ref, key=key, version=version, blob=blobs.create()
    )


def _entry(repository: Repository, ref: str, key: str, version: str) -> CacheEntry | None:
    rows = CacheEntry.objects.select_related("blob", "job")
    return rows.filter(repository=repository, version=version, key=key, ref=ref).order_by("pk").first()


def _check_free(found: CacheEntry, job: Job) -> None:
    """Raises AlreadyExists."""
    if found.finalized_at is not None:
        raise AlreadyExists(f"There is a cache {found.key} of this version for {found.ref} already.")
    if found.job is not None and found.job_id != job.pk and found.job.state in ACTIVE_STATES:
        raise AlreadyExists(f"Another job, {found.job.name}, is making the cache {found.key} for {found.ref}.")

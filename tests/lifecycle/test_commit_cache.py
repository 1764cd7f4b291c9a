"""commit_cache: all that was uploaded, of the size that was said, or nothing at all."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from ci.lifecycle import caches
from ci.lifecycle.errors import AlreadyExists, Conflict, InvalidInput, JobEnded, LifecycleError, NotFound
from ci.models import CacheEntry, Job, StoragePolicy
from ci.storage import blobs
from tests.lifecycle.caching import VERSION, begin, found, job_of, kept, on, save, upload
from tests.playground import Playground


def reserve(job: Job, key: str = "deps") -> CacheEntry:
    return caches.reserve_cache(job=job, key=key, version=VERSION)


def commit(job: Job, size: int, **which: Any) -> CacheEntry:
    return caches.commit_cache(job=job, size=size, **(which or {"key": "deps", "version": VERSION}))


def put(entry: CacheEntry, start: int, content: bytes) -> None:
    """As a client of v1 does."""
    blobs.put_part(blob=entry.blob, block_id=blobs.offset_id(start), source=BytesIO(content), size=len(content))


def refused(kind: type[LifecycleError], job: Job, size: int, **which: Any) -> None:
    before = list(CacheEntry.objects.order_by("pk").values())
    parts = [list(entry.blob.parts.order_by("pk").values()) for entry in CacheEntry.objects.order_by("pk")]
    with pytest.raises(kind):
        commit(job, size, **which)
    assert list(CacheEntry.objects.order_by("pk").values()) == before
    assert [list(entry.blob.parts.order_by("pk").values()) for entry in CacheEntry.objects.order_by("pk")] == parts


def content_of(entry: CacheEntry) -> bytes:
    return b"".join(blobs.read(entry.blob))


def test_it_is_found_with_what_was_uploaded(playground: Playground) -> None:
    job = on(playground)
    upload(reserve(job), b"abc")
    entry = commit(job, 3)
    assert (entry.size, entry.finalized_at is not None) == (3, True)
    seen = found(job, "deps")
    assert seen == entry
    assert content_of(entry) == b"abc"


def test_nothing_at_all_can_be_kept(playground: Playground) -> None:
    job = on(playground)
    upload(reserve(job), b"")
    assert content_of(commit(job, 0)) == b""
    other = reserve(job, "older")
    assert content_of(commit(job, 0, entry_id=other.pk)) == b""


def test_a_repeat_changes_nothing(playground: Playground) -> None:
    job = on(playground)
    upload(reserve(job), b"abc")
    first = commit(job, 3)
    again = commit(job, 3)
    assert (again.pk, again.finalized_at) == (first.pk, first.finalized_at)
    assert commit(job, 3, entry_id=first.pk).finalized_at == first.finalized_at
    refused(AlreadyExists, job, 4)


def test_another_size_is_refused(playground: Playground) -> None:
    job = on(playground)
    upload(reserve(job), b"abc")
    refused(InvalidInput, job, 4)
    refused(InvalidInput, job, -1)
    assert commit(job, 3).size == 3


def test_what_was_not_uploaded_is_refused(playground: Playground) -> None:
    job = on(playground)
    entry = reserve(job)
    refused(Conflict, job, 3)
    put(entry, 0, b"abc")
    refused(Conflict, job, 3)
    assert kept() == []


def test_only_the_job_that_reserved_it_commits(playground: Playground) -> None:
    entry = reserve(on(playground))
    upload(entry, b"abc")
    other = on(playground, runner="beta")
    refused(NotFound, other, 3)
    refused(NotFound, other, 3, entry_id=entry.pk)
    refused(NotFound, other, 3, entry_id=entry.pk + 1)


def test_a_job_that_has_ended_commits_nothing(playground: Playground) -> None:
    assigned = begin(playground)
    job = job_of(assigned)
    upload(reserve(job), b"abc")
    assigned.complete()
    refused(JobEnded, job, 3)


def test_parts_are_joined_by_their_offsets_in_whatever_order_they_came(playground: Playground) -> None:
    job = on(playground)
    entry = reserve(job)
    for start, part in ((6, b"gh"), (0, b"abc"), (3, b"xxx"), (3, b"def")):
        put(entry, start, part)
    assert content_of(commit(job, 8, entry_id=entry.pk)) == b"abcdefgh"


@pytest.mark.parametrize("starts", [(0, 4), (3,), (0, 2)], ids=["a hole", "no beginning", "an overlap"])
def test_parts_that_do_not_make_a_whole_are_refused(playground: Playground, starts: tuple[int, ...]) -> None:
    job = on(playground)
    entry = reserve(job)
    for start in starts:
        put(entry, start, b"abc")
    refused(InvalidInput, job, starts[-1] + 3, entry_id=entry.pk)


def test_parts_of_another_size_in_all_are_refused(playground: Playground) -> None:
    job = on(playground)
    entry = reserve(job)
    put(entry, 0, b"abc")
    refused(InvalidInput, job, 4, entry_id=entry.pk)
    put(entry, 3, b"d")
    assert content_of(commit(job, 4, entry_id=entry.pk)) == b"abcd"


def test_what_does_not_fit_the_quota_alone_is_refused(playground: Playground) -> None:
    job = on(playground)
    save(job, "small")
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=3)
    upload(reserve(job), b"abcd")
    refused(InvalidInput, job, 4)
    assert kept() == ["small"]


def test_what_the_rest_leaves_no_room_for_has_the_longest_unused_go(playground: Playground) -> None:
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=9)
    job = on(playground)
    for key in ("one", "two", "three"):
        save(job, key)
    assert found(job, "one") is not None
    CacheEntry.objects.filter(key="two").update(last_used_at="2026-01-01T00:00Z")
    save(job, "four")
    assert kept() == ["one", "three", "four"]

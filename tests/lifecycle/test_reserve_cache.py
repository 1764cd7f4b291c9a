"""reserve_cache: a key is one job's until it has committed or ended, and bad ones store nothing."""

from __future__ import annotations

import pytest

from ci.lifecycle import caches
from ci.lifecycle.caches.reserve import MAX_OPEN
from ci.lifecycle.errors import (
    AlreadyExists,
    Conflict,
    InvalidInput,
    JobEnded,
    LifecycleError,
    NotAllowed,
    NotFound,
    Unauthenticated,
)
from ci.models import Blob, CacheEntry, Job, StoragePolicy
from ci.storage.blobs import BlobMissing
from tests.lifecycle.caching import DEFAULT, VERSION, begin, found, job_of, on, pull_request, save, upload
from tests.playground import Playground


def reserve(job: Job, key: str = "deps", *, version: str = VERSION, size: int | None = None) -> CacheEntry:
    return caches.reserve_cache(job=job, key=key, version=version, size=size)


def refused(kind: type[LifecycleError], job: Job, key: str = "deps", **given: str | int) -> LifecycleError:
    """Nothing is stored, and nothing of what was there has changed."""
    before = rows()
    with pytest.raises(kind) as raised:
        reserve(job, key, **given)
    assert raised.type is kind
    assert rows() == before
    return raised.value


def rows() -> list[tuple[object, ...]]:
    return [*CacheEntry.objects.order_by("pk").values_list(), *Blob.objects.order_by("pk").values_list()]


def test_what_is_reserved_is_not_found_yet(playground: Playground) -> None:
    job = on(playground)
    entry = reserve(job)
    assert (entry.ref, entry.finalized_at, entry.blob.size) == (DEFAULT, None, None)
    assert found(job, "deps") is None


def test_a_key_that_another_job_is_making_is_refused(playground: Playground) -> None:
    reserve(on(playground))
    error = refused(AlreadyExists, on(playground, runner="beta"))
    assert "Another job, build" in error.detail


def test_what_a_job_that_ended_has_reserved_is_taken_over(playground: Playground) -> None:
    dead = begin(playground)
    old = reserve(job_of(dead))
    upload(old, b"half")
    dead.complete("failure")
    new = reserve(on(playground, runner="beta"))
    assert new.pk != old.pk
    assert list(CacheEntry.objects.all()) == [new]
    assert list(Blob.objects.all()) == [new.blob]
    with pytest.raises(BlobMissing):
        upload(old, b"the other half")


def test_a_job_may_begin_its_own_anew(playground: Playground) -> None:
    job = on(playground)
    old, new = reserve(job), reserve(job)
    assert list(CacheEntry.objects.all()) == [new]
    with pytest.raises(NotFound):
        caches.commit_cache(job=job, entry_id=old.pk, size=0)


def test_what_is_committed_is_not_replaced(playground: Playground) -> None:
    job = on(playground)
    entry = save(job, "deps")
    assert str(entry.ref) in refused(AlreadyExists, job).detail
    refused(AlreadyExists, on(playground, runner="beta"))


@pytest.mark.parametrize("other", [{"version": "other"}, {"key": "Deps"}, {"key": "deps "}])
def test_another_key_or_version_is_free(playground: Playground, other: dict[str, str]) -> None:
    job = on(playground)
    save(job, "deps")
    reserve(job, **other)


def test_each_ref_has_its_own(playground: Playground) -> None:
    save(on(playground), "deps")
    refs = ["refs/heads/topic", "refs/tags/v1", "refs/pull/7/merge", "refs/pull/8/merge"]
    for number, ref in enumerate(refs):
        assert save(on(playground, runner=f"runner-{number}", ref=ref), "deps").ref == ref


KEYS = {
    "empty": "",
    "a comma": "a,b",
    "too long": "k" * 513,
    "NUL": "a\0b",
    "half a surrogate pair": "a\ud800",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_that_will_not_do_stores_nothing(playground: Playground, key: str) -> None:
    error = refused(InvalidInput, on(playground), key)
    assert isinstance(error, InvalidInput)
    assert list(error.errors) == ["key"]


@pytest.mark.parametrize("version", ["", "a b", "v" * 101, "v\n", "ü"])
def test_a_version_that_will_not_do_stores_nothing(playground: Playground, version: str) -> None:
    error = refused(InvalidInput, on(playground), version=version)
    assert isinstance(error, InvalidInput)
    assert list(error.errors) == ["version"]


def test_the_longest_key_and_any_characters_will_do(playground: Playground) -> None:
    job = on(playground)
    for key in ("k" * 512, "ü" * 512, "a b%c_d\\e#'\"\n/🦀"):
        assert save(job, key).key == key
        assert found(job, key) is not None


def test_a_stranger_adds_nothing_to_the_default_branch(playground: Playground) -> None:
    job = on(playground, trusted=False)
    assert "default branch" in refused(NotAllowed, job).detail


def test_a_stranger_adds_to_the_own_pull_request(playground: Playground) -> None:
    job = on(playground, trusted=False, **pull_request(7))
    assert save(job, "deps").ref == "refs/pull/7/merge"


def test_a_job_that_has_ended_reserves_nothing(playground: Playground) -> None:
    assigned = begin(playground)
    job = job_of(assigned)
    assigned.complete()
    refused(JobEnded, job)


def test_an_assignment_that_was_taken_back_reserves_nothing(playground: Playground) -> None:
    job = on(playground)
    Job.objects.filter(pk=job.pk).update(assignment=job.assignment + 1)
    refused(Unauthenticated, job)


def test_a_job_may_leave_only_so_many_unfinished(playground: Playground) -> None:
    job = on(playground)
    for number in range(MAX_OPEN):
        reserve(job, f"deps-{number}")
    refused(Conflict, job)
    reserve(job, "deps-0")


def test_what_is_said_to_be_too_large_is_refused(playground: Playground) -> None:
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=1000)
    job = on(playground)
    assert "1001 bytes" in refused(InvalidInput, job, size=1001).detail
    reserve(job, size=1000)

"""Caches: who reserves, commits, evicts or deletes in a repository waits for whoever does so there already."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from ci.lifecycle import caches
from ci.lifecycle.errors import AlreadyExists, JobEnded, NotFound, Unauthenticated
from ci.models import Blob, CacheEntry, Job, StoragePolicy
from forge.repositories import delete_repository
from tests.lifecycle.caching import VERSION, begin, found, job_of, kept, on, save, upload
from tests.playground import Playground
from tests.races.interleaving import PATIENCE_SECONDS, rival_before

LOCK_REPOSITORY = r'FROM "forge_repository" .*FOR NO KEY UPDATE'
WAITING = 'SELECT "forge_repository"'
INSERT = r'INSERT INTO "ci_cacheentry"'
FINISH = r'UPDATE "ci_cacheentry" SET "size"'
# What a commit looks at to make room, once its own entry is written.
MAKE_ROOM = r'AS "entries"'
DELETE = r'DELETE FROM "ci_cacheentry"'


def reserve(job: Job, key: str = "deps") -> CacheEntry:
    return caches.reserve_cache(job=job, key=key, version=VERSION)


def ready(job: Job, key: str = "deps", size: int = 3) -> CacheEntry:
    """Uploaded and not committed."""
    entry = reserve(job, key)
    upload(entry, b"x" * size)
    return entry


def commit(job: Job, key: str = "deps", size: int = 3) -> CacheEntry:
    return caches.commit_cache(job=job, key=key, version=VERSION, size=size)


def allow(playground: Playground, quota: int) -> None:
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=quota)


def test_of_two_who_reserve_a_key_at_once_one_gets_it(committing_playground: Playground) -> None:
    one, two = on(committing_playground), on(committing_playground, runner="beta")
    with rival_before(INSERT, lambda: reserve(two)) as rival:
        reserve(one)
    assert rival.waited_in.startswith(WAITING)
    assert isinstance(rival.error, AlreadyExists)
    assert CacheEntry.objects.get().job == one
    assert Blob.objects.count() == 1


def test_of_two_who_take_over_what_a_dead_job_left_one_gets_it(committing_playground: Playground) -> None:
    dead = begin(committing_playground)
    reserve(job_of(dead))
    dead.complete()
    one, two = on(committing_playground, runner="beta"), on(committing_playground, runner="gamma")
    with rival_before(DELETE, lambda: reserve(two)) as rival:
        reserve(one)
    assert rival.waited_in.startswith(WAITING)
    assert isinstance(rival.error, AlreadyExists)
    assert CacheEntry.objects.get().job == one
    assert Blob.objects.count() == 1


def test_jobs_of_other_repositories_do_not_wait(committing_playground: Playground) -> None:
    one = on(committing_playground)
    committing_playground.run(repository=committing_playground.make_repository(name="other"))
    two = job_of(committing_playground.assigned(committing_playground.runner(name="beta")).begin())
    with rival_before(INSERT, lambda: reserve(two)) as rival:
        reserve(one)
    assert (rival.error, rival.waited_in) == (None, "")


def test_an_eviction_waits_for_the_commit_and_counts_it(committing_playground: Playground) -> None:
    playground = committing_playground
    save(on(playground), "older")
    job = on(playground, runner="beta")
    ready(job)
    allow(playground, 3)
    with rival_before(MAKE_ROOM, lambda: caches.evict(playground.repository.pk)) as rival:
        commit(job)
    assert rival.waited_in.startswith(WAITING)
    assert rival.result == 0, "the commit had made room itself"
    assert kept() == ["deps"]


def test_a_commit_waits_for_the_eviction_and_finds_room(committing_playground: Playground) -> None:
    playground = committing_playground
    for key in ("older", "newer"):
        save(on(playground, runner=key), key)
    job = on(playground, runner="beta")
    ready(job)
    allow(playground, 3)
    with rival_before(DELETE, lambda: commit(job)) as rival:
        assert caches.evict(playground.repository.pk) == 1
    assert rival.waited_in.startswith(WAITING)
    assert rival.error is None
    assert kept() == ["deps"]


@pytest.mark.parametrize("point", [FINISH, MAKE_ROOM])
def test_two_commits_at_once_stay_within_the_quota(committing_playground: Playground, point: str) -> None:
    """Each alone would leave the older one; neither sees the other's before it has ended."""
    playground = committing_playground
    save(on(playground), "older")
    one, two = on(playground, runner="beta"), on(playground, runner="gamma")
    ready(one, "one")
    ready(two, "two")
    allow(playground, 8)
    with rival_before(point, lambda: commit(two, "two")) as rival:
        commit(one, "one")
    assert rival.waited_in.startswith(WAITING)
    assert rival.error is None
    assert kept() == ["one", "two"]
    assert caches.usage(playground.repository) == (2, 6)


def test_the_end_of_a_job_waits_for_its_commit(committing_playground: Playground) -> None:
    assigned = begin(committing_playground)
    job = job_of(assigned)
    ready(job)
    with rival_before(FINISH, assigned.complete) as rival:
        commit(job)
    assert rival.waited_in.startswith('SELECT "ci_run"')
    assert rival.error is None
    assert kept() == ["deps"]
    assert assigned.job.is_ended


def test_a_commit_of_a_job_that_ends_at_that_moment_changes_nothing(committing_playground: Playground) -> None:
    assigned = begin(committing_playground)
    job = job_of(assigned)
    ready(job)
    with rival_before(LOCK_REPOSITORY, assigned.complete) as rival, pytest.raises(JobEnded):
        commit(job)
    assert rival.error is None
    assert kept() == []


@pytest.mark.parametrize("verb", [reserve, commit])
def test_a_call_of_an_assignment_that_is_replaced_at_that_moment_changes_nothing(
    committing_playground: Playground, verb: object
) -> None:
    job = on(committing_playground)
    ready(job)
    before = list(CacheEntry.objects.values())
    take_back = lambda: Job.objects.filter(pk=job.pk).update(assignment=job.assignment + 1)  # noqa: E731
    with rival_before(LOCK_REPOSITORY, take_back), pytest.raises(Unauthenticated):
        verb(job)  # type: ignore[operator]
    assert list(CacheEntry.objects.values()) == before


def test_a_repeated_commit_finds_what_was_deleted_meanwhile_gone(committing_playground: Playground) -> None:
    job = on(committing_playground)
    entry = save(job, "deps")
    delete = lambda: caches.delete_cache(cache_id=entry.pk, actor=committing_playground.alice)  # noqa: E731
    with rival_before(LOCK_REPOSITORY, delete) as rival, pytest.raises(NotFound):
        commit(job)
    assert rival.error is None
    assert not Blob.objects.exists()


def test_a_cache_goes_once_whoever_deletes_it(committing_playground: Playground) -> None:
    job = on(committing_playground)
    entry = save(job, "deps")
    delete = lambda: caches.delete_cache(cache_id=entry.pk, actor=committing_playground.alice)  # noqa: E731
    with rival_before(DELETE, delete) as rival:
        delete()
    assert isinstance(rival.error, NotFound)


def test_a_look_up_does_not_wait_for_a_commit(committing_playground: Playground) -> None:
    job, other = on(committing_playground), on(committing_playground, runner="beta")
    save(job, "deps-1")
    ready(job, "deps-2")
    with rival_before(MAKE_ROOM, lambda: found(other, "deps-")) as rival:
        commit(job, "deps-2")
    assert (rival.error, rival.waited_in) == (None, "")
    assert rival.result.key == "deps-1"


def test_a_repository_is_deleted_after_the_commit_with_all_of_it(committing_playground: Playground) -> None:
    playground = committing_playground
    job = on(playground)
    ready(job)
    with rival_before(FINISH, lambda: delete_repository(repository=playground.repository)) as rival:
        commit(job)
    assert rival.waited_in.startswith(WAITING)
    assert rival.error is None
    assert not CacheEntry.objects.exists()


@pytest.mark.parametrize("verb", [reserve, commit])
def test_who_comes_while_the_repository_is_deleted_finds_none(committing_playground: Playground, verb: object) -> None:
    playground = committing_playground
    job = on(playground)
    ready(job)
    with rival_before("DELETE FROM", lambda: verb(job)) as rival:  # type: ignore[operator]
        delete_repository(repository=playground.repository)
    assert rival.waited_in.startswith(WAITING)
    assert isinstance(rival.error, NotFound)
    assert not CacheEntry.objects.exists()


def test_many_jobs_at_once_never_leave_more_than_fits(committing_playground: Playground) -> None:
    """In an order that is not the test's to choose; this holds after every commit all the same."""
    playground = committing_playground
    jobs = [on(playground, runner=f"runner-{number}") for number in range(4)]
    allow(playground, 10)
    together = threading.Barrier(len(jobs))

    def work(job: Job) -> list[int]:
        try:
            together.wait(PATIENCE_SECONDS)
            sizes = []
            for number in range(6):
                save(job, f"{job.pk}-{number}")
                sizes.append(caches.usage(playground.repository).size)
            return sizes
        finally:
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as threads:
        sizes = [size for seen in threads.map(work, jobs) for size in seen]
    assert (len(sizes), max(sizes)) == (24, 9)
    assert caches.usage(playground.repository) == (3, 9)
    assert CacheEntry.objects.count() == Blob.objects.count() == 3

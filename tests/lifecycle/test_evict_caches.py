"""evict, delete_cache and usage: what goes, when there is no room or no use for it, and that its bytes go too."""

from __future__ import annotations

import importlib
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone
from django_q.models import OrmQ
from pytest_django.fixtures import Settings

from ci.lifecycle import caches, storage_policies, tasks
from ci.lifecycle.errors import InvalidInput, NotFound
from ci.models import Blob, BlobPart, CacheEntry, Event, StoragePolicy
from tests.lifecycle.caching import VERSION, begin, found, job_of, kept, on, save, upload
from tests.playground import Playground

# The package exports a function of the module's own name.
eviction = importlib.import_module("ci.lifecycle.caches.evict")


def used(key: str, *, days_ago: float) -> None:
    CacheEntry.objects.filter(key=key).update(last_used_at=timezone.now() - timedelta(days=days_ago))


def three(playground: Playground) -> None:
    """Of three bytes each; `middle` was used longest ago."""
    job = on(playground)
    for key, days_ago in (("old", 2), ("middle", 3), ("new", 1)):
        save(job, key)
        used(key, days_ago=days_ago)


def test_over_the_quota_those_used_longest_ago_go(playground: Playground) -> None:
    three(playground)
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=6)
    assert caches.evict(playground.repository.pk) == 1
    assert kept() == ["old", "new"]
    assert caches.evict(playground.repository.pk) == 0
    StoragePolicy.objects.update(cache_bytes=5)
    assert caches.evict(playground.repository.pk) == 1
    assert kept() == ["new"]
    StoragePolicy.objects.update(cache_bytes=0)
    caches.evict(playground.repository.pk)
    assert kept() == []


def test_without_a_quota_of_its_own_the_instances_counts(playground: Playground, settings: Settings) -> None:
    three(playground)
    settings.CACHE_BYTES = 3
    assert caches.quota(playground.repository) == 3
    caches.evict(playground.repository.pk)
    assert kept() == ["new"]


def test_of_equals_the_earlier_one_goes(playground: Playground) -> None:
    three(playground)
    CacheEntry.objects.update(last_used_at=timezone.now())
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=6)
    caches.evict(playground.repository.pk)
    assert kept() == ["middle", "new"]


def test_what_is_just_committed_stays_whatever_the_clocks_say(playground: Playground) -> None:
    three(playground)
    CacheEntry.objects.update(last_used_at=timezone.now() + timedelta(minutes=5))
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=6)
    save(on(playground, runner="beta"), "newest")
    assert kept() == ["new", "newest"]


def test_there_are_only_so_many_entries(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eviction, "MAX_ENTRIES", 2)
    three(playground)
    assert kept() == ["old", "new"]
    save(on(playground, runner="beta"), "empty", b"")
    assert kept() == ["new", "empty"]


def test_what_nobody_used_for_a_week_goes(playground: Playground) -> None:
    three(playground)
    used("old", days_ago=6.9)
    used("middle", days_ago=7.1)
    assert caches.evict(playground.repository.pk) == 1
    assert kept() == ["old", "new"]


def test_how_long_is_a_setting(playground: Playground, settings: Settings) -> None:
    settings.CACHE_DAYS = 2
    three(playground)
    caches.evict(playground.repository.pk)
    assert kept() == ["new"]


def test_what_a_job_left_unfinished_goes_with_it(playground: Playground) -> None:
    assigned = begin(playground)
    entry = caches.reserve_cache(job=job_of(assigned), key="deps", version=VERSION)
    upload(entry, b"abc")
    assert caches.evict(playground.repository.pk) == 0
    assigned.complete()
    assert caches.evict(playground.repository.pk) == 1
    assert not CacheEntry.objects.exists()
    assert not Blob.objects.exists()


def test_more_than_fit_one_transaction_go_too(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eviction, "BATCH", 2)
    three(playground)
    save(on(playground, runner="beta"), "newest")
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=0)
    used("old", days_ago=9)
    assert caches.evict(playground.repository.pk) == 4
    assert kept() == []


def test_the_hourly_sweep_finds_every_repository_with_something_old(playground: Playground) -> None:
    three(playground)
    other = playground.make_repository(name="other")
    playground.run(repository=other)
    save(job_of(playground.assigned(playground.runner(name="beta"))), "elsewhere")
    for key in ("middle", "elsewhere"):
        used(key, days_ago=8)
    tasks.evict_stale_caches()
    assert kept() == ["old", "new"]
    tasks.evict_stale_caches()
    assert kept() == ["old", "new"]


def test_a_repository_that_is_gone_has_nothing_to_evict(playground: Playground) -> None:
    with pytest.raises(NotFound):
        caches.evict(playground.repository.pk + 1)
    tasks.evict_caches(playground.repository.pk + 1)


def test_the_bytes_go_with_it(committing_playground: Playground) -> None:
    three(committing_playground)
    files = dict(BlobPart.objects.values_list("blob__cache_entry__key", "file"))
    assert all(default_storage.exists(file) for file in files.values())
    StoragePolicy.objects.create(repository=committing_playground.repository, cache_bytes=3)
    caches.evict(committing_playground.repository.pk)
    assert {key for key, file in files.items() if default_storage.exists(file)} == {"new"}
    assert Blob.objects.count() == BlobPart.objects.count() == 1


def test_usage_counts_what_is_committed(playground: Playground) -> None:
    assert caches.usage(playground.repository) == (0, 0)
    three(playground)
    caches.reserve_cache(job=on(playground, runner="beta"), key="deps", version=VERSION)
    assert caches.usage(playground.repository) == (3, 9)


def test_one_is_deleted_by_its_number(playground: Playground) -> None:
    three(playground)
    caches.delete_cache(cache_id=CacheEntry.objects.get(key="old").pk, actor=playground.alice)
    assert kept() == ["middle", "new"]
    assert Blob.objects.count() == 2
    event = Event.objects.get(kind="cache_deleted")
    assert (event.actor, event.detail) == (playground.alice, "old (refs/heads/main) of alice/widgets")


def test_what_is_not_there_or_not_complete_is_not_deleted(playground: Playground) -> None:
    entry = caches.reserve_cache(job=on(playground), key="deps", version=VERSION)
    for cache_id in (entry.pk, entry.pk + 1):
        with pytest.raises(NotFound):
            caches.delete_cache(cache_id=cache_id, actor=playground.alice)
    assert CacheEntry.objects.count() == 1


def test_all_of_a_key_are_deleted_or_those_of_one_ref(playground: Playground) -> None:
    topic = on(playground, runner="beta", ref="refs/heads/topic")
    for job in (on(playground), topic):
        save(job, "deps")
        save(job, "deps", version="other")
        save(job, "deps-more")
    gone = caches.delete_caches(
        repository=playground.repository, key="deps", ref="refs/heads/topic", actor=playground.alice
    )
    assert [(entry.key, entry.ref) for entry in gone] == [("deps", "refs/heads/topic")] * 2
    assert all(entry.pk for entry in gone)
    assert found(topic, "deps") is not None, "the default branch's"
    assert len(caches.delete_caches(repository=playground.repository, key="deps", actor=playground.alice)) == 2
    assert kept() == ["deps-more", "deps-more"]
    with pytest.raises(NotFound):
        caches.delete_caches(repository=playground.repository, key="deps", actor=playground.alice)


def test_only_an_operator_gives_a_repository_more_than_the_instance(playground: Playground, settings: Settings) -> None:
    settings.CACHE_BYTES = 1000
    given = {"repository": playground.repository, "artifact_days": None}
    with pytest.raises(InvalidInput) as raised:
        storage_policies.set_policy(cache_bytes=1001, actor=playground.alice, **given)
    assert list(raised.value.errors) == ["cache_bytes"]
    storage_policies.set_policy(cache_bytes=1000, actor=playground.alice, **given)
    storage_policies.set_policy(cache_bytes=1001, actor=playground.operator, **given)
    storage_policies.set_policy(cache_bytes=1001, actor=playground.alice, **given)  # left as it is
    assert caches.quota(playground.repository) == 1001
    with pytest.raises(InvalidInput):
        storage_policies.set_policy(cache_bytes=1002, actor=playground.alice, **given)


def test_what_a_lower_quota_leaves_no_room_for_goes_soon(playground: Playground) -> None:
    three(playground)
    storage_policies.set_policy(
        repository=playground.repository, artifact_days=None, cache_bytes=3, actor=playground.alice
    )
    task = OrmQ.objects.latest("pk").task
    assert (task["func"], task["args"]) == ("ci.lifecycle.tasks.evict_caches", (playground.repository.pk,))
    tasks.evict_caches(*task["args"])
    assert kept() == ["new"]

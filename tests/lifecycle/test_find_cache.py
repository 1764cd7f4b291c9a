"""find_cache: the nearest scope first; in it the key itself, then the newest that begins with a key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from ci.lifecycle import caches
from ci.lifecycle.caches.find import USED_EVERY, matches
from ci.lifecycle.errors import InvalidInput
from ci.models import CacheEntry, Job
from tests.lifecycle.caching import VERSION, found, kept, on, pull_request, save
from tests.playground import Playground
from tests.races.interleaving import amid

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def key_of(job: Job, *keys: str, version: str = VERSION) -> str | None:
    entry = found(job, *keys, version=version)
    return entry.key if entry else None


def ref_of(job: Job, *keys: str) -> str | None:
    entry = found(job, *keys)
    return entry.ref if entry else None


def test_the_key_itself_comes_before_a_newer_one_that_begins_with_it(playground: Playground) -> None:
    job = on(playground)
    save(job, "deps-1")
    save(job, "deps-12")
    assert key_of(job, "deps-1") == "deps-1"


def test_of_those_that_begin_with_it_the_newest(playground: Playground) -> None:
    job = on(playground)
    for key in ("deps-2", "deps-3", "deps-1", "other"):
        save(job, key)
    assert key_of(job, "deps-") == "deps-1"


def test_the_newest_is_what_was_committed_last(playground: Playground) -> None:
    job = on(playground)
    for key in ("deps-1", "deps-2"):
        save(job, key)
    CacheEntry.objects.filter(key="deps-2").update(created_at=timezone.now(), finalized_at=LONG_AGO)
    assert key_of(job, "deps-") == "deps-1"


def test_further_keys_are_tried_in_their_order(playground: Playground) -> None:
    job = on(playground)
    for key in ("linux-npm-1", "linux-npm-2", "linux-pip-1"):
        save(job, key)
    assert key_of(job, "linux-npm-9", "linux-npm-", "linux-") == "linux-npm-2"
    assert key_of(job, "linux-gem-9", "linux-gem-", "linux-") == "linux-pip-1"
    assert key_of(job, "mac-npm-9", "mac-") is None


def test_a_further_key_is_only_what_it_begins_with(playground: Playground) -> None:
    job = on(playground)
    save(job, "deps")
    save(job, "deps-newer")
    assert key_of(job, "other", "deps") == "deps-newer"


def test_another_version_is_not_found(playground: Playground) -> None:
    job = on(playground)
    save(job, "deps")
    assert key_of(job, "deps", version="other") is None


@pytest.mark.parametrize(("asked", "other"), [("a%", "abc"), ("a_c", "abc"), ("a\\", "abc"), ("A", "abc")])
def test_no_character_stands_for_others(playground: Playground, asked: str, other: str) -> None:
    job = on(playground)
    save(job, other)
    assert key_of(job, asked) is None
    save(job, f"{asked}-real")
    assert key_of(job, "x", asked) == f"{asked}-real"


def test_a_branch_sees_its_own_and_the_default_branchs(playground: Playground) -> None:
    main = on(playground)
    topic = on(playground, runner="beta", ref="refs/heads/topic")
    sibling = on(playground, runner="gamma", ref="refs/heads/sibling")
    save(sibling, "deps")
    assert ref_of(topic, "deps") is None
    save(main, "deps")
    assert ref_of(topic, "deps") == "refs/heads/main"
    save(topic, "deps")
    assert ref_of(topic, "deps") == "refs/heads/topic"
    assert ref_of(main, "deps") == "refs/heads/main"


def test_the_nearer_scope_comes_before_the_better_key(playground: Playground) -> None:
    topic = on(playground, ref="refs/heads/topic")
    save(topic, "deps-1")
    save(on(playground, runner="beta"), "deps-2")
    assert key_of(topic, "deps-2", "deps-") == "deps-1"


def test_a_pull_request_sees_its_own_then_its_bases_then_the_default_branchs(playground: Playground) -> None:
    request = on(playground, **pull_request(7, base="release"))
    save(on(playground, runner="beta"), "deps")
    assert ref_of(request, "deps") == "refs/heads/main"
    save(on(playground, runner="gamma", ref="refs/heads/release"), "deps")
    assert ref_of(request, "deps") == "refs/heads/release"
    save(request, "deps")
    assert ref_of(request, "deps") == "refs/pull/7/merge"


def test_nobody_else_sees_what_a_pull_request_keeps(playground: Playground) -> None:
    save(on(playground, **pull_request(7)), "deps")
    for number, fields in enumerate(({}, {"ref": "refs/heads/topic"}, pull_request(8))):
        assert found(on(playground, runner=f"runner-{number}", **fields), "deps") is None


def test_a_base_that_another_event_speaks_of_opens_nothing(playground: Playground) -> None:
    save(on(playground, ref="refs/heads/release"), "deps")
    fields = {**pull_request(7, base="release"), "event": "repository_dispatch"}
    assert found(on(playground, runner="beta", **fields), "deps") is None


@pytest.mark.parametrize("payload", [{}, {"pull_request": None}, {"pull_request": {"base": "x"}}])
def test_a_payload_without_a_base_is_no_fault(playground: Playground, payload: dict[str, object]) -> None:
    job = on(playground, **{**pull_request(7), "payload": payload})
    assert found(job, "deps") is None


def test_another_repository_has_caches_of_its_own(playground: Playground) -> None:
    save(on(playground), "deps")
    other = playground.make_repository(name="other")
    playground.run(repository=other)
    assigned = playground.assigned(playground.runner(name="beta"))
    from_other = caches.find_cache(job=assigned.job, keys=["deps"], version=VERSION)
    assert assigned.job.run.repository == other
    assert from_other is None


def test_a_stranger_reads_the_default_branchs(playground: Playground) -> None:
    save(on(playground), "deps")
    assert key_of(on(playground, runner="beta", trusted=False, **pull_request(7)), "deps") == "deps"


def test_what_is_found_has_been_used_but_is_written_once_a_minute(playground: Playground) -> None:
    job = on(playground)
    entry = save(job, "deps")
    recent = timezone.now() - USED_EVERY / 2
    CacheEntry.objects.filter(pk=entry.pk).update(last_used_at=recent)
    found(job, "deps")
    assert CacheEntry.objects.get().last_used_at == recent
    CacheEntry.objects.filter(pk=entry.pk).update(last_used_at=recent - USED_EVERY)
    found(job, "deps")
    assert CacheEntry.objects.get().last_used_at > recent


def test_what_goes_at_that_very_moment_is_not_handed_out(playground: Playground) -> None:
    job = on(playground)
    save(job, "deps-1")
    newer = save(job, "deps-2")
    CacheEntry.objects.update(last_used_at=timezone.now() - timedelta(hours=1))
    with amid(
        r'UPDATE "ci_cacheentry" SET "last_used_at"',
        lambda: caches.delete_cache(cache_id=newer.pk, actor=playground.alice),
    ):
        assert key_of(job, "deps-") == "deps-1"
    assert kept() == ["deps-1"]


@pytest.mark.parametrize("keys", [[], [""], ["a,b"], ["k" * 513], ["k"] * 11, ["ok", ""], ["ok", "a\0"]])
def test_keys_that_will_not_do_are_refused(playground: Playground, keys: list[str]) -> None:
    with pytest.raises(InvalidInput) as raised:
        found(on(playground), *keys)
    assert list(raised.value.errors) == ["keys"]


def test_ten_keys_will_do(playground: Playground) -> None:
    job = on(playground)
    save(job, "k9-x")
    assert key_of(job, *(f"k{number}" for number in range(10))) == "k9-x"


def test_those_who_found_none_are_told_what_there_is(playground: Playground) -> None:
    job = on(playground)
    for key, version in (("deps-1", "other"), ("deps-2", VERSION), ("x", VERSION)):
        save(job, key, version=version)
    save(on(playground, runner="beta", ref="refs/heads/topic"), "deps-3")
    rows = caches.visible_caches(job=job, key="deps-", version=VERSION)
    assert [entry.key for entry in rows] == ["deps-2", "deps-1"]


MANY = 20_000
FILL = """
    WITH made AS (
        INSERT INTO ci_blob
            (key, content_type, content_encoding, created_at, size, put_size, put_count, digest, committed_at)
        SELECT gen_random_uuid(), '', '', now(), 1, 1, 1, '', now() FROM generate_series(1, %(many)s) RETURNING id
    )
    INSERT INTO ci_cacheentry
        (repository_id, ref, key, version, blob_id, size, created_at, finalized_at, last_used_at)
    SELECT %(repository)s, 'refs/heads/main', 'k-' || id, %(version)s, id, 1, now(), now(), now() FROM made
"""


@pytest.mark.parametrize(
    "keys", [["k-1", "k-12"], ["k%-1", "k_2"], [f"k-{number}" for number in range(10)]], ids=["two", "escaped", "ten"]
)
def test_the_index_of_prefixes_serves_the_look_up(playground: Playground, keys: list[str]) -> None:
    job = on(playground)
    with connection.cursor() as cursor:
        given = {"many": MANY, "repository": playground.repository.pk, "version": VERSION}
        cursor.execute(FILL, given)
        cursor.execute("ANALYZE ci_cacheentry")
    # What is looked up is rare among the many: else reading all would be right.
    plan = matches(job.run, [f"{key}9999" for key in keys], VERSION)[:1].explain()
    assert "cache_entry_by_prefix" in plan, plan
    assert "~>=~" in plan, plan  # the index is asked for the key, not for repository and version only
    assert "Seq Scan on ci_cacheentry" not in plan, plan

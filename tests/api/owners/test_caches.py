"""Caches by the owners' API, at GitHub's addresses: who sees them, in which shape, and who deletes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from django.test import Client

from ci.models import CacheEntry, Event
from tests.api.calls import call, error_of
from tests.lifecycle.caching import VERSION, job_of, kept, on, save

BASE = "repos/alice/widgets/actions"
CALLS = [
    ("GET", f"{BASE}/caches"),
    ("GET", f"{BASE}/cache/usage"),
    ("DELETE", f"{BASE}/caches?key=deps-1"),
    ("DELETE", f"{BASE}/caches/{{id}}"),
]


@pytest.fixture
def saved(playground):
    """Three, of 1, 2 and 3 bytes, used in another order than made."""
    main, topic = on(playground), on(playground, runner="beta", ref="refs/heads/topic")
    entries = [save(main, "deps-1", b"a"), save(topic, "deps-1", b"bb"), save(main, "other_x", b"ccc")]
    for entry, day in zip(entries, (3, 1, 2), strict=True):
        CacheEntry.objects.filter(pk=entry.pk).update(last_used_at=datetime(2026, 1, day, tzinfo=UTC))
    return entries


def listed(person, query=""):
    answer = person.get(f"{BASE}/caches{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def ids(person, query=""):
    return [one["id"] for one in listed(person, query)["actions_caches"]]


def test_they_are_listed_in_githubs_shape(saved, alice):
    first, second, third = saved
    shown = listed(alice)
    assert shown["total_count"] == 3
    assert [one["id"] for one in shown["actions_caches"]] == [first.pk, third.pk, second.pk]
    assert shown["actions_caches"][0] == {
        "id": first.pk,
        "ref": "refs/heads/main",
        "key": "deps-1",
        "version": VERSION,
        "last_accessed_at": "2026-01-03T00:00:00Z",
        "created_at": first.created_at.isoformat().replace("+00:00", "Z"),
        "size_in_bytes": 1,
    }


def test_they_are_filtered_and_sorted(saved, alice):
    first, second, third = (entry.pk for entry in saved)
    assert ids(alice, "?ref=refs/heads/topic") == [second]
    assert ids(alice, "?ref=topic") == []
    assert ids(alice, "?key=deps-") == [first, second]
    assert ids(alice, "?key=other%25") == []
    assert ids(alice, "?key=&ref=") == [first, third, second]
    assert ids(alice, "?sort=size_in_bytes") == [third, second, first]
    assert ids(alice, "?sort=created_at&direction=asc") == [first, second, third]


@pytest.mark.parametrize("query", ["sort=x", "direction=up", "key=%00", "ref=" + "r" * 1025, "key=" + "k" * 513])
def test_what_cannot_be_asked_is_refused(saved, alice, query):
    error_of(alice.get(f"{BASE}/caches?{query}"), 400, "invalid")


def test_other_pages_are_in_the_link_header(saved, alice):
    answer = alice.get(f"{BASE}/caches?per_page=2")
    assert len(answer.json()["actions_caches"]) == 2
    address = re.fullmatch(r'<([^>]+)>; rel="next"', answer["Link"])[1]
    assert re.search(r"page=2", address)
    last = alice.get(address.partition("/api/v1/")[2])
    assert len(last.json()["actions_caches"]) == 1
    assert last["Link"].endswith('rel="prev"')
    assert "Link" not in alice.get(f"{BASE}/caches").headers


def test_clients_of_github_name_its_media_type(saved, alice):
    headers = {"Accept": "application/vnd.github+json", "Authorization": f"token {alice.token}"}
    answer = Client().get(f"/api/v1/{BASE}/caches", headers=headers)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"


def test_usage_is_the_sum(saved, alice):
    assert alice.get(f"{BASE}/cache/usage").json() == {
        "full_name": "alice/widgets",
        "active_caches_size_in_bytes": 6,
        "active_caches_count": 3,
    }


def test_one_is_deleted_by_its_id(saved, bob):
    assert bob("DELETE", f"{BASE}/caches/{saved[0].pk}").status_code == 204
    assert list(CacheEntry.objects.order_by("pk")) == saved[1:]
    error_of(bob("DELETE", f"{BASE}/caches/{saved[0].pk}"), 404, "not_found")


def test_all_of_a_key_are_deleted(saved, bob):
    answer = bob("DELETE", f"{BASE}/caches?key=deps-1&ref=refs/heads/topic")
    assert (answer.status_code, answer.json()["total_count"]) == (200, 1)
    assert answer.json()["actions_caches"][0]["id"] == saved[1].pk
    assert bob("DELETE", f"{BASE}/caches?key=deps-1").json()["actions_caches"][0]["id"] == saved[0].pk
    error_of(bob("DELETE", f"{BASE}/caches?key=deps-1"), 404, "not_found")
    error_of(bob("DELETE", f"{BASE}/caches"), 400, "invalid")
    assert kept() == ["other_x"]


def test_a_key_of_any_characters_is_deleted(playground, alice):
    save(on(playground), " a&b%c #1 ")
    assert alice("DELETE", f"{BASE}/caches?key={quote(' a&b%c #1 ')}").status_code == 200


def test_what_is_of_another_repository_is_not_there(saved, playground, alice):
    playground.make_repository(name="other")
    error_of(alice("DELETE", f"repos/alice/other/actions/caches/{saved[0].pk}"), 404, "not_found")
    assert alice.get("repos/alice/other/actions/caches").json() == {"total_count": 0, "actions_caches": []}
    assert len(kept()) == 3


@pytest.mark.parametrize(("method", "address"), CALLS, ids=[f"{m} {a}" for m, a in CALLS])
def test_members_read_and_writers_delete(saved, alice, bob, carol, mallory, visitor, method, address):
    address = address.format(id=saved[0].pk)
    error_of(mallory(method, address), 404, "not_found")
    if method == "GET":
        error_of(visitor(method, address), 404, "not_found")
        assert carol(method, address).status_code == 200
    else:
        error_of(visitor(method, address), 401, "unauthenticated")
        error_of(carol(method, address), 403, "not_allowed")
        assert len(kept()) == 3
    assert bob(method, address).status_code in (200, 204)


def test_those_of_a_public_repository_are_seen_by_all(saved, playground, visitor):
    type(playground.repository).objects.update(private=False)
    assert listed(visitor)["total_count"] == 3
    error_of(visitor("DELETE", f"{BASE}/caches?key=deps-1"), 401, "unauthenticated")


JOB = """
    on: push
    permissions: {{actions: {may}}}
    jobs:
      build: {{runs-on: linux, steps: [{{run: echo}}]}}
"""


@pytest.mark.parametrize(("may", "status"), [("write", 204), ("read", 403)])
def test_a_job_deletes_with_its_own_token_where_it_may(playground, may, status):
    playground.run(JOB.format(may=may))
    assigned = playground.assigned().begin()
    entry = save(job_of(assigned), "deps")
    assert call("GET", f"/api/v1/{BASE}/caches", token=assigned.token).json()["total_count"] == 1
    answer = call("DELETE", f"/api/v1/{BASE}/caches/{entry.pk}", token=assigned.token)
    assert answer.status_code == status
    if status == 204:
        event = Event.objects.get(kind="cache_deleted")
        assert (event.actor, event.detail) == (None, "deps (refs/heads/main) of alice/widgets, by job build")


def test_a_job_without_the_permission_sees_nothing(playground):
    playground.run(JOB.format(may="none"))
    assigned = playground.assigned().begin()
    error_of(call("GET", f"/api/v1/{BASE}/caches", token=assigned.token), 404, "not_found")

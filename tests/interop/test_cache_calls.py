"""Do the calls of caches, v2 over twirp and v1 over REST, answer what clients take, and refuse as the contract says?"""

from __future__ import annotations

from io import BytesIO
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client

from ci.lifecycle.caches.reserve import MAX_OPEN
from ci.models import CacheEntry, StoragePolicy
from ci.storage import blobs
from tests.interop.cache_calls import BASE, SERVICE, stored, v1, v2
from tests.lifecycle.caching import VERSION, begin, pull_request
from tests.playground import Assigned, Playground

DEPS = {"key": "deps", "version": VERSION}
CREATE, FINALIZE, FIND = "CreateCacheEntry", "FinalizeCacheEntryUpload", "GetCacheEntryDownloadURL"


@pytest.fixture
def job(playground: Playground) -> Assigned:
    return begin(playground)


def body(answer: HttpResponse, status: int) -> Any:
    assert answer.status_code == status, answer.content
    assert answer["Cache-Control"] == "no-store"
    return answer.json() if answer.content else None


def upload(content: bytes = b"abc") -> CacheEntry:
    entry = CacheEntry.objects.latest("pk")
    blobs.put_whole(blob=entry.blob, source=BytesIO(content), size=len(content))
    return entry


def save(job: Assigned, key: str = "deps") -> None:
    body(v2(job, CREATE, key=key, version=VERSION), 200)
    upload()
    body(v2(job, FINALIZE, key=key, version=VERSION, size_bytes="3"), 200)


def path_of(address: str) -> str:
    assert address.startswith(settings.SERVER_URL + "/_blobs/")
    return urlsplit(address).path


# v2


def test_v2_reserves_commits_and_finds(job: Assigned) -> None:
    made = body(v2(job, CREATE, **DEPS), 200)
    entry = upload()
    assert (made["ok"], path_of(made["signed_upload_url"])) == (True, f"/_blobs/upload/{entry.blob.key}")
    done = body(v2(job, FINALIZE, **DEPS, size_bytes="3"), 200)
    assert done == {"ok": True, "entry_id": str(entry.pk)}
    found = body(v2(job, FIND, key="none", restore_keys=["no", "de"], version=VERSION), 200)
    assert (found["ok"], found["matched_key"]) == (True, "deps")
    assert path_of(found["signed_download_url"]) == f"/_blobs/download/{entry.blob.key}/cache-{entry.pk}"
    assert body(v2(job, FIND, key="none", restore_keys=[], version=VERSION), 200) == {"ok": False}


def test_v2_takes_the_other_spelling_of_names_and_numbers(job: Assigned) -> None:
    body(v2(job, CREATE, metadata=None, **DEPS), 200)
    upload()
    assert body(v2(job, FINALIZE, sizeBytes=3, **DEPS), 200)["ok"]
    assert body(v2(job, FIND, key="x", restoreKeys=["deps"], version=VERSION), 200)["ok"]


def refused_v2(job: Assigned, method: str, status: int, code: str, **given: Any) -> str:
    before = stored()
    said = body(v2(job, method, **given), status)
    assert (said["code"], stored()) == (code, before)
    message: str = said["msg"]
    assert message
    return message


LOOK_UPS: dict[str, dict[str, Any]] = {
    "no key": {},
    "a comma": {"key": "a,b"},
    "a comma in a further one": {"key": "a", "restore_keys": ["a,b"]},
    "too long": {"key": "k" * 513},
    "too many": {"key": "k", "restore_keys": ["k"] * 10},
    "far too many": {"key": "k", "restore_keys": ["k"] * 1000},
    "no text": {"key": 7},
    "no list": {"key": "k", "restore_keys": "k"},
    "an empty one": {"key": "k", "restore_keys": [""]},
}


@pytest.mark.parametrize("given", LOOK_UPS.values(), ids=LOOK_UPS)
def test_v2_refuses_to_look_up_what_is_no_key(job: Assigned, given: dict[str, Any]) -> None:
    refused_v2(job, FIND, 400, "invalid_argument", **{"version": VERSION, **given})


@pytest.mark.parametrize(
    "given", [{"key": ""}, {"key": "a,b"}, {"key": "k" * 513}, {"version": ""}, {"version": "a b"}]
)
def test_v2_refuses_to_reserve_what_is_no_key_or_version(job: Assigned, given: dict[str, Any]) -> None:
    refused_v2(job, CREATE, 400, "invalid_argument", **{**DEPS, **given})
    refused_v2(job, FINALIZE, 400, "invalid_argument", size_bytes=3, **{**DEPS, **given})


def test_v2_says_that_there_is_one(playground: Playground, job: Assigned) -> None:
    body(v2(job, CREATE, **DEPS), 200)
    other = begin(playground, runner="beta")
    refused_v2(other, CREATE, 409, "already_exists", **DEPS)
    upload()
    body(v2(job, FINALIZE, **DEPS, size_bytes=3), 200)
    assert "already" in refused_v2(other, CREATE, 409, "already_exists", **DEPS)


def test_v2_refuses_to_commit_what_is_not_there(job: Assigned) -> None:
    refused_v2(job, FINALIZE, 404, "not_found", **DEPS, size_bytes=3)
    body(v2(job, CREATE, **DEPS), 200)
    refused_v2(job, FINALIZE, 412, "failed_precondition", **DEPS, size_bytes=3)
    upload()
    refused_v2(job, FINALIZE, 400, "invalid_argument", **DEPS, size_bytes=4)
    refused_v2(job, FINALIZE, 400, "invalid_argument", **DEPS, size_bytes="-3")
    refused_v2(job, FINALIZE, 400, "invalid_argument", **DEPS, size_bytes="three")
    body(v2(job, FINALIZE, **DEPS, size_bytes=3), 200)


def test_v2_refuses_who_may_not(playground: Playground, job: Assigned) -> None:
    stranger = begin(playground, runner="beta", trusted=False)
    refused_v2(stranger, CREATE, 403, "permission_denied", **DEPS)
    job.complete()
    refused_v2(job, CREATE, 412, "failed_precondition", **DEPS)
    assert (
        body(Client().post(SERVICE + CREATE, DEPS, content_type="application/json"), 401)["code"] == "unauthenticated"
    )


# v1


def test_v1_reserves_commits_and_finds(job: Assigned) -> None:
    made = body(v1(job, "POST", "caches", {**DEPS, "cacheSize": 3}), 201)
    entry = CacheEntry.objects.get()
    assert made == {"cacheId": entry.pk}
    blobs.put_part(blob=entry.blob, block_id=blobs.offset_id(0), source=BytesIO(b"abc"), size=3)
    assert body(v1(job, "POST", f"caches/{entry.pk}", {"size": 3}), 204) is None
    found = body(v1(job, "GET", f"cache?keys={quote('none,de')}&version={VERSION}"), 200)
    assert (found["cacheKey"], found["cacheVersion"], found["scope"]) == ("deps", VERSION, "refs/heads/main")
    assert path_of(found["archiveLocation"]) == f"/_blobs/download/{entry.blob.key}/cache-{entry.pk}"
    assert body(v1(job, "GET", f"cache?keys=none&version={VERSION}"), 204) is None


def test_v1_and_v2_find_what_the_other_kept(job: Assigned) -> None:
    save(job)
    assert body(v1(job, "GET", f"cache?keys=deps&version={VERSION}"), 200)["cacheKey"] == "deps"


def test_v1_lists_what_there_is_for_those_who_found_nothing(playground: Playground, job: Assigned) -> None:
    save(job)
    save(begin(playground, runner="beta", **pull_request(7)), "deps-hidden")
    listed = body(v1(job, "GET", "caches?key=de&version=other"), 200)
    assert [(one["cacheKey"], one["cacheVersion"]) for one in listed["artifactCaches"]] == [("deps", VERSION)]
    assert listed["totalCount"] == 1


def refused_v1(job: Assigned, status: int, code: str, method: str, path: str, given: Any = None) -> str:
    before = stored()
    said = body(v1(job, method, path, given), status)
    assert (said["code"], stored()) == (code, before)
    message: str = said["message"]
    assert message
    return message


QUERIES = {
    "none": "",
    "no version": "keys=a",
    "a wrong version": "keys=a&version=a%20b",
    "an empty one": f"keys=a,,b&version={VERSION}",
    "too long": f"keys={'k' * 513}&version={VERSION}",
    "too many": f"keys={','.join('k' * 11)}&version={VERSION}",
    "NUL": f"keys=a%00&version={VERSION}",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_v1_refuses_to_look_up_what_is_no_key(job: Assigned, query: str) -> None:
    refused_v1(job, 400, "invalid", "GET", f"cache?{query}")


@pytest.mark.parametrize("given", [{"key": ""}, {"key": "a,b"}, {"key": "k" * 513}, {"version": "a b"}, {"key": [1]}])
def test_v1_refuses_to_reserve_what_is_no_key_or_version(job: Assigned, given: dict[str, Any]) -> None:
    refused_v1(job, 400, "invalid", "POST", "caches", {**DEPS, **given})


def test_v1_refuses_what_is_too_large_in_words(playground: Playground, job: Assigned) -> None:
    StoragePolicy.objects.create(repository=playground.repository, cache_bytes=10)
    said = refused_v1(job, 400, "invalid", "POST", "caches", {**DEPS, "cacheSize": 11})
    assert "11 bytes" in said


def test_v1_says_that_there_is_one(playground: Playground, job: Assigned) -> None:
    save(job)
    refused_v1(begin(playground, runner="beta"), 409, "already_exists", "POST", "caches", DEPS)


def test_v1_refuses_to_commit_what_is_not_there(playground: Playground, job: Assigned) -> None:
    made = body(v1(job, "POST", "caches", DEPS), 201)["cacheId"]
    refused_v1(job, 400, "invalid", "POST", f"caches/{made}", {"size": 3})
    refused_v1(job, 400, "invalid", "POST", f"caches/{made}", {})
    refused_v1(job, 404, "not_found", "POST", f"caches/{made + 1}", {"size": 0})
    refused_v1(job, 404, "not_found", "POST", f"caches/{'9' * 30}", {"size": 0})
    refused_v1(begin(playground, runner="beta"), 404, "not_found", "POST", f"caches/{made}", {"size": 0})


def test_v1_refuses_who_may_not(playground: Playground, job: Assigned) -> None:
    refused_v1(begin(playground, runner="beta", trusted=False), 403, "not_allowed", "POST", "caches", DEPS)
    job.complete()
    refused_v1(job, 409, "job_ended", "POST", "caches", DEPS)
    assert Client().get(f"{BASE}cache?keys=a&version=b").status_code == 401


def test_v1_refuses_other_methods(job: Assigned) -> None:
    answer = v1(job, "DELETE", "caches", None)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, POST")


def test_a_job_leaves_only_so_many_unfinished(job: Assigned) -> None:
    for number in range(MAX_OPEN):
        body(v2(job, CREATE, key=f"deps-{number}", version=VERSION), 200)
    refused_v2(job, CREATE, 412, "failed_precondition", **DEPS)
    refused_v1(job, 409, "conflict", "POST", "caches", DEPS)

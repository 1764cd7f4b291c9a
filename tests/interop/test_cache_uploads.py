"""Do the parts of a cache come by PATCH, chunked or not, in any order, and does whatever goes wrong store nothing?"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from ci.models import BlobPart, CacheEntry
from tests.api.server import Server
from tests.interop.cache_calls import BASE, stored, token_of, v1
from tests.lifecycle.caching import VERSION, begin
from tests.playground import Assigned, Playground

MIB = 2**20
LIMITS = {"FORGE_BLOB_PART_BYTES": str(2 * MIB), "FORGE_ARTIFACT_BYTES": str(3 * MIB)}


@pytest.fixture(scope="module")
def server(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with django_db_blocker.unblock():
        started = Server(tmp_path_factory.mktemp("server") / "log", **LIMITS)
    with started:
        yield started
    assert "Traceback" not in started.log


@pytest.fixture
def job(committing_playground: Playground) -> Assigned:
    return begin(committing_playground)


@pytest.fixture
def entry(job: Assigned) -> CacheEntry:
    assert v1(job, "POST", "caches", {"key": "deps", "version": VERSION}).status_code == 201
    return CacheEntry.objects.get()


def patch(server: Server, job: Assigned, entry: CacheEntry, content: Any, said: str, **headers: str) -> httpx.Response:
    return httpx.patch(
        f"{server.url}{BASE}caches/{entry.pk}",
        content=content,
        headers={"Authorization": f"Bearer {token_of(job)}", "Content-Range": said, **headers},
        timeout=60,
    )


def chunks(*parts: bytes) -> Iterator[bytes]:
    """Sent without a Content-Length."""
    yield from parts


def commit(server: Server, job: Assigned, entry: CacheEntry, size: int) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token_of(job)}"}
    return httpx.post(f"{server.url}{BASE}caches/{entry.pk}", json={"size": size}, headers=headers, timeout=60)


def fetched(server: Server, job: Assigned) -> bytes:
    found = httpx.get(
        f"{server.url}{BASE}cache?keys=deps&version={VERSION}",
        headers={"Authorization": f"Bearer {token_of(job)}"},
        timeout=60,
    )
    return httpx.get(found.json()["archiveLocation"], timeout=60).content


def files() -> list[Path]:
    return [path for path in (Path(settings.DATA_DIR) / "blobs" / "parts").rglob("*") if path.is_file()]


def refused(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status, answer.text
    assert answer.json()["message"]


def test_chunked_parts_in_any_order_are_joined(server: Server, job: Assigned, entry: CacheEntry) -> None:
    first, last = b"a" * MIB, b"b" * (MIB + 1)
    assert patch(server, job, entry, chunks(last[:9], last[9:]), f"bytes {MIB}-{2 * MIB}/*").status_code == 204
    assert patch(server, job, entry, chunks(b"x" * MIB), f"bytes 0-{MIB - 1}/*").status_code == 204
    again = patch(server, job, entry, first, f"bytes 0-{MIB - 1}/{2 * MIB + 1}")
    assert (again.status_code, again.content) == (204, b"")
    assert commit(server, job, entry, 2 * MIB + 1).status_code == 204
    assert fetched(server, job) == first + last


def test_what_is_committed_takes_no_more(server: Server, job: Assigned, entry: CacheEntry) -> None:
    assert patch(server, job, entry, b"abc", "bytes 0-2/*").status_code == 204
    assert commit(server, job, entry, 3).status_code == 204
    refused(patch(server, job, entry, b"xyz", "bytes 0-2/*"), 409)
    assert fetched(server, job) == b"abc"


RANGES = ["", "bytes 0-2", "bytes 2-0/*", "bytes 0-3/*", "bytes 0-1/*", "bytes */*", "lines 0-2/*", "bytes 0-2/2"]


@pytest.mark.parametrize("said", RANGES)
def test_a_range_that_is_not_the_bodys_is_refused(server: Server, job: Assigned, entry: CacheEntry, said: str) -> None:
    before = stored(), files()
    refused(patch(server, job, entry, chunks(b"abc"), said), 413 if said == "bytes 0-1/*" else 400)
    assert (stored(), files()) == before
    assert not BlobPart.objects.exists()


@pytest.mark.parametrize("said", [f"bytes 0-{2 * MIB}/*", f"bytes {3 * MIB}-{3 * MIB}/*"])
def test_what_is_too_large_is_refused_and_the_client_hears_it(
    server: Server, job: Assigned, entry: CacheEntry, said: str
) -> None:
    refused(patch(server, job, entry, chunks(*[b"x" * MIB] * 8), said), 413)
    assert not BlobPart.objects.exists()


def test_parts_that_are_too_large_together_are_refused(server: Server, job: Assigned, entry: CacheEntry) -> None:
    for start in (0, 1, 2):
        part = b"x" * (MIB + 1)
        answer = patch(server, job, entry, part, f"bytes {start}-{start + MIB}/*")
        assert answer.status_code == (413 if start == 2 else 204)
    assert BlobPart.objects.count() == 2


def test_only_the_job_that_reserved_it_sends_parts(
    committing_playground: Playground, server: Server, job: Assigned, entry: CacheEntry
) -> None:
    other = begin(committing_playground, runner="beta")
    refused(patch(server, other, entry, b"abc", "bytes 0-2/*"), 404)
    refused(patch(server, job, entry, b"abc", "bytes 0-2/*", Authorization="Bearer x"), 401)
    job.complete()
    refused(patch(server, job, entry, b"abc", "bytes 0-2/*"), 409)
    assert not BlobPart.objects.exists()


def test_what_a_client_did_not_send_to_the_end_is_not_stored(server: Server, job: Assigned, entry: CacheEntry) -> None:
    client = http.client.HTTPConnection(f"127.0.0.1:{server.port}", timeout=60)
    client.putrequest("PATCH", f"{BASE}caches/{entry.pk}")
    for name, value in (
        ("Authorization", f"Bearer {token_of(job)}"),
        ("Content-Range", f"bytes 0-{2 * MIB - 1}/*"),
        ("Transfer-Encoding", "chunked"),
    ):
        client.putheader(name, value)
    client.endheaders()
    client.send(b"100000\r\n" + b"x" * MIB + b"\r\n")
    client.close()
    assert patch(server, job, entry, b"abc", "bytes 0-2/*").status_code == 204
    assert list(BlobPart.objects.values_list("size", flat=True)) == [3]
    assert commit(server, job, entry, 3).status_code == 204
    assert fetched(server, job) == b"abc"

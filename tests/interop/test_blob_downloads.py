"""Are bytes handed out whole or in a range, under any name, and never as a page of this site?"""

import os
import socket
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest
from django.core.files.storage import default_storage

from ci.models import Blob, BlobPart
from ci.storage import blobs
from tests.api.server import Server
from tests.interop.blob_server import assert_refused, download_address, peak, upload_address
from tests.storage.blob_files import committed, put

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 2**20


@pytest.fixture(scope="module")
def server(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock():
        started = Server(tmp_path_factory.mktemp("server") / "log")
    with started as server:
        yield server


@pytest.fixture(autouse=True)
def tidy(transactional_db):
    yield
    for blob in Blob.objects.all():
        blobs.discard(blob)


def get(server, blob, *, filename="a.zip", method="GET", **headers):
    address = download_address(server, blob, filename)
    return httpx.request(
        method, address, headers={name.replace("_", "-"): value for name, value in headers.items()}, timeout=60
    )


def test_the_whole_blob_comes_as_an_attachment(server):
    blob = committed(b"abc", b"defgh")
    Blob.objects.update(content_type="application/zip")
    answer = get(server, blob)
    assert (answer.status_code, answer.content) == (200, b"abcdefgh")
    expected = {
        "content-length": "8",
        "content-type": "application/zip",
        "content-disposition": 'attachment; filename="a.zip"',
        "accept-ranges": "bytes",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": "private, no-store",
        "etag": f'"{blob.key}"',
    }
    assert {name: answer.headers.get(name) for name in expected} == expected


def test_head_tells_all_but_the_bytes(server):
    blob = committed(b"abc", b"defgh")
    told, shown = get(server, blob, method="HEAD"), get(server, blob)
    assert (told.status_code, told.content) == (200, b"")
    assert {**told.headers, "date": ""} == {**shown.headers, "date": ""}


def test_nothing_at_all_comes_too(server):
    answer = get(server, committed())
    assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "0", b"")


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=2-4", 2, 5),
        ("bytes=6-", 6, 8),
        ("bytes=0-", 0, 8),
        ("bytes=7-99999", 7, 8),
        ("bytes=-3", 5, 8),
        ("bytes=-100", 0, 8),
    ],
)
@pytest.mark.parametrize("header", ["range", "x_ms_range"])
def test_one_range_is_answered_with_just_that(server, asked, start, end, header):
    answer = get(server, committed(b"abc", b"defgh"), **{header: asked})
    assert (answer.status_code, answer.content) == (206, b"abcdefgh"[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/8"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize("asked", ["bytes=0-1,3-4", "bytes=4-2", "lines=1-2", "bytes=", "bytes=-", "bytes=a-b"])
def test_a_range_that_is_not_understood_is_ignored(server, asked):
    answer = get(server, committed(b"abc"), range=asked)
    assert (answer.status_code, answer.content) == (200, b"abc")


@pytest.mark.parametrize("asked", ["bytes=3-", "bytes=3-10", "bytes=-0"])
def test_a_range_behind_the_end_is_refused(server, asked):
    answer = get(server, committed(b"abc"), range=asked)
    assert_refused(answer, 416, "InvalidRange")
    assert answer.headers["content-range"] == "bytes */3"


def test_a_range_of_another_version_is_not_given(server):
    blob = committed(b"abc")
    assert get(server, blob, range="bytes=1-", if_range='"other"').status_code == 200
    assert get(server, blob, range="bytes=1-", if_range=f'"{blob.key}"').content == b"bc"


@pytest.mark.parametrize(
    "name",
    ["my art ü.zip", "100% of #1?.zip", 'with "quotes" & +plus;.zip', "back\\slash", "line\r\nX-Evil: 1", "名前"],
)
def test_any_name_comes_through_and_breaks_no_header(server, name):
    answer = get(server, committed(b"abc"), filename=name)
    assert (answer.status_code, answer.content) == (200, b"abc")
    disposition = answer.headers["content-disposition"]
    assert disposition.endswith(f"; filename*=UTF-8''{quote(name, safe='')}")
    assert disposition.startswith('attachment; filename="')
    assert "x-evil" not in answer.headers


def test_what_came_packed_is_handed_out_as_packed(server):
    blob = committed(b"\x1f\x8b whatever")
    Blob.objects.update(content_encoding="gzip")
    with httpx.stream("GET", download_address(server, blob)) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        assert b"".join(answer.iter_raw()) == b"\x1f\x8b whatever"


def test_a_type_that_would_break_the_headers_is_not_repeated(server):
    blob = committed(b"abc")
    Blob.objects.update(content_type="text/html\r\nX-Evil: 1", content_encoding="a\r\nX-Evil: 1")
    answer = get(server, blob)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert not {"x-evil", "content-encoding"} & set(answer.headers)


def test_an_address_that_was_forged_changed_or_is_over_gives_nothing(server):
    blob, other = committed(b"abc"), committed(b"other")
    good = download_address(server, blob)
    for bad in (
        good.partition("?")[0],
        good.replace("a.zip", "b.zip"),
        good.replace("/a.zip", ""),
        good.replace(str(blob.key), str(other.key)),
        good.replace("se=", "se=1"),
        good[:-1] + ("0" if good[-1] != "0" else "1"),
        download_address(server, blob, seconds=-1),
        upload_address(server, blob).replace("/upload/", "/download/"),
    ):
        assert_refused(httpx.get(bad), 403, "AuthenticationFailed")


def test_what_is_gone_or_not_complete_is_not_found(server):
    blob = blobs.create()
    put(blob, "a", b"abc")
    assert_refused(get(server, blob), 404, "BlobNotFound")
    gone = committed(b"abc")
    address = download_address(server, gone)
    blobs.discard(gone)
    assert_refused(httpx.get(address), 404, "BlobNotFound")


def test_other_methods_are_refused(server):
    blob = committed(b"abc")
    for method in ("PUT", "POST", "DELETE"):
        answer = get(server, blob, method=method)
        assert_refused(answer, 405, "UnsupportedHttpVerb")
        assert answer.headers["allow"] == "GET, HEAD"


def test_bytes_that_the_storage_lost_are_an_error_and_not_a_short_file(server):
    blob = committed(b"abc", b"def")
    default_storage.delete(BlobPart.objects.get(position=1).file)
    with pytest.raises(httpx.RemoteProtocolError):
        get(server, blob)
    default_storage.delete(BlobPart.objects.get(position=0).file)
    assert_refused(get(server, blob), 500, "InternalError")


def test_200_mib_pass_and_never_sit_in_memory(server):
    blob = committed(*[os.urandom(8 * MIB)] * 25)
    assert get(server, blob, range="bytes=0-1000").status_code == 206
    before = peak(server)
    size = 0
    with httpx.stream("GET", download_address(server, blob), timeout=60) as answer:
        for piece in answer.iter_raw():
            size += len(piece)
    assert size == 200 * MIB
    assert peak(server) - before < 24 * MIB


def _open_parts(server):
    links = [os.readlink(link) for link in Path(f"/proc/{server.process.pid}/fd").iterdir() if link.is_symlink()]
    return [link for link in links if "/blobs/parts/" in link]


def _until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_a_client_that_reads_slowly_holds_the_bytes_back_and_one_that_leaves_ends_it(server):
    blob = committed(b"1")
    # Of holes, and so large that nobody reads all of it while the test looks.
    os.truncate(default_storage.path(BlobPart.objects.get().file), 2**40)
    BlobPart.objects.update(size=2**40)
    Blob.objects.update(size=2**40)
    parts = urlsplit(download_address(server, blob))
    assert get(server, blob, range="bytes=0-1000").status_code == 206
    before = peak(server)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as client:
        client.sendall(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        time.sleep(1)  # not for a race: the time in which a server without backpressure would fill its memory
        assert peak(server) - before < 24 * MIB
        assert _open_parts(server)
    _until(lambda: not _open_parts(server))

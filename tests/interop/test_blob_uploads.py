"""Do the clients of Azure's storage put bytes here as there, and does whatever goes wrong store nothing?"""

import base64
import hashlib
import http.client
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.conf import settings

from ci.models import Blob, BlobPart
from ci.storage import blobs
from tests.api.server import Server, until
from tests.interop.blob_server import (
    BLOCK_BLOB,
    Uploads,
    assert_refused,
    at_once,
    begun_upload,
    block_id,
    block_list,
    peak,
    upload_address,
    zeros,
)

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 2**20


@pytest.fixture(scope="module")
def server(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock():
        started = Server(tmp_path_factory.mktemp("server") / "log", FORGE_BLOB_PART_BYTES=str(400 * MIB))
    with started as server:
        yield server
    assert "Traceback" not in server.log


@pytest.fixture
def small_server(transactional_db, tmp_path):
    """Where little is already too much."""
    with Server(tmp_path / "log", FORGE_BLOB_PART_BYTES=str(MIB), FORGE_ARTIFACT_BYTES=str(3 * MIB)) as server:
        yield server
    assert "Traceback" not in server.log


@pytest.fixture
def blob(transactional_db):
    made = blobs.create()
    yield made
    for one in Blob.objects.all():
        blobs.discard(one)
    assert files(made) == []


@pytest.fixture
def uploads(server, blob):
    return Uploads(server, blob)


def files(blob: Blob) -> list[Path]:
    folder = Path(settings.DATA_DIR) / "blobs" / "parts"
    return [path for path in folder.rglob(f"{blob.key.hex}*") if path.is_file()]


def content(blob: Blob) -> bytes:
    return b"".join(blobs.read(blob))


def nothing_is_stored(blob: Blob) -> bool:
    return not BlobPart.objects.exists() and files(blob) == []


def test_blocks_in_any_order_become_a_blob_by_their_list(uploads, blob):
    for name, data in (("c", b"three"), ("a", b"one"), ("b", b"two")):
        answer = uploads.block(name, data)
        assert (answer.status_code, answer.headers["content-length"], answer.content) == (201, "0", b"")
    answer = uploads.commit("a", "b", "c", x_ms_blob_content_type="application/zip")
    assert (answer.status_code, answer.headers["content-length"], answer.content) == (201, "0", b"")
    blob.refresh_from_db()
    assert (blob.size, blob.content_type) == (11, "application/zip")
    assert content(blob) == b"onetwothree"


def test_five_blocks_at_once_as_the_client_sends_them(uploads, blob):
    data = [os.urandom(MIB) for _ in range(5)]
    names = [f"block {number}" for number in range(5)]
    answers = at_once(*(lambda n=name, d=part: uploads.block(n, d) for name, part in zip(names, data, strict=True)))
    assert [answer.status_code for answer in answers] == [201] * 5
    assert uploads.commit(*names).status_code == 201
    assert content(blob) == b"".join(data)


def test_one_put_is_a_whole_blob(uploads, blob):
    answer = uploads.put(b"all of it", x_ms_blob_content_type="text/plain")
    assert (answer.status_code, answer.headers["content-length"]) == (201, "0")
    assert content(blob) == b"all of it"
    assert uploads.put(b"all of it").status_code == 201, "a repeat after a lost answer"
    assert_refused(uploads.put(b"something else"), 409, "BlobAlreadyExists")
    assert content(blob) == b"all of it"


def test_a_body_in_chunks_means_the_same_as_one_with_a_length(uploads, blob):
    assert uploads.put(iter([b"in ", b"chunks"])).status_code == 201
    assert content(blob) == b"in chunks"


@pytest.mark.parametrize("whole", [True, False])
def test_nothing_at_all_is_a_blob_too(uploads, blob, whole):
    if whole:
        assert uploads.put(b"").status_code == 201
    else:
        assert uploads.commit().status_code == 201
    blob.refresh_from_db()
    assert blob.size == 0
    assert content(blob) == b""


def test_everything_may_be_repeated_after_a_lost_answer(uploads, blob):
    for _ in range(2):
        assert uploads.block("a", b"one").status_code == 201
    for _ in range(2):
        assert uploads.commit("a").status_code == 201
    assert uploads.block("a", b"one").status_code == 201
    assert content(blob) == b"one"


def test_a_block_id_may_have_any_letter_of_base64(uploads, blob):
    name = "\x03\xfb\xff~"
    assert set("+/=") & set(block_id(name))
    assert uploads.block(name, b"x").status_code == 201
    unquoted = f"{uploads.address}&comp=block&blockid={block_id(name)}"
    assert httpx.put(unquoted, content=b"yz", timeout=60).status_code == 201
    assert uploads.commit(name).status_code == 201
    assert content(blob) == b"yz"


def test_a_list_that_names_a_missing_block_changes_nothing(uploads, blob):
    uploads.block("a", b"one")
    answer = uploads.commit("a", "never sent")
    assert_refused(answer, 400, "InvalidBlockList")
    assert block_id("never sent") in answer.text
    blob.refresh_from_db()
    assert blob.committed_at is None
    assert uploads.commit("a").status_code == 201


def test_a_list_with_a_block_twice_and_another_list_after_the_commit_are_refused(uploads, blob):
    uploads.block("a", b"one")
    uploads.block("b", b"two")
    assert_refused(uploads.commit("a", "a"), 400, "InvalidBlockList")
    assert uploads.commit("a").status_code == 201
    assert_refused(uploads.commit("b"), 409, "BlobAlreadyExists")
    assert_refused(uploads.block("b", b"two"), 409, "BlobAlreadyExists")
    assert content(blob) == b"one"


@pytest.mark.parametrize(
    "document",
    [
        '<!DOCTYPE x [<!ENTITY a "YQ=="><!ENTITY b "&a;&a;&a;&a;">]><BlockList><Latest>&b;</Latest></BlockList>',
        '<!DOCTYPE x SYSTEM "file:///etc/passwd"><BlockList/>',
        "<BlockList><Latest>&undefined;</Latest></BlockList>",
        "<BlockList><Latest>YQ==</Latest>",
        "<Blocks><Latest>YQ==</Latest></Blocks>",
        "<BlockList><Latest>not base64</Latest></BlockList>",
        "",
        b"\xff\xfe\x00",
        '<?xml version="1.0" encoding="unknown-999"?><BlockList/>',
    ],
)
def test_a_list_that_is_none_is_refused(uploads, blob, document):
    uploads.block("a", b"one")
    assert_refused(uploads.commit_document(document), 400, "InvalidXmlDocument")
    blob.refresh_from_db()
    assert blob.committed_at is None


def test_a_list_that_is_too_long_is_refused(uploads, blob):
    assert_refused(uploads.commit_document(b" " * (9 * MIB)), 413, "RequestBodyTooLarge")


def test_an_address_that_was_forged_changed_or_is_over_stores_nothing(server, uploads, blob):
    address = uploads.address
    other = blobs.create()
    bad = (
        address.partition("?")[0],
        address[:-1] + ("0" if address[-1] != "0" else "1"),
        address.replace("se=", "se=1"),
        address.replace(str(blob.key), str(other.key)),
        address.replace("/upload/", "/download/"),
        upload_address(server, blob, seconds=-1),
    )
    for one in bad:
        for query in ("", "&comp=block&blockid=YQ==", "&comp=blocklist"):
            joined = one + (query if "?" in one else "?" + query.lstrip("&"))
            assert_refused(httpx.put(joined, content=b"x", headers=BLOCK_BLOB), 403, "AuthenticationFailed")
    assert nothing_is_stored(blob)


def test_who_is_refused_hears_it_after_sending_much(server, uploads, blob):
    """Also one whose connection ends with the answer, as of clients that keep none."""
    client = begun_upload(uploads.address.replace("sig=", "sig=0"), length=20 * MIB, Connection="close")
    for piece in zeros(20 * MIB):
        client.send(piece)
    assert client.getresponse().status == 403
    client.close()
    assert nothing_is_stored(blob)


@pytest.mark.parametrize(
    ("query", "headers", "code"),
    [
        ("", {}, "InvalidHeaderValue"),
        ("", {"x-ms-blob-type": "PageBlob"}, "InvalidHeaderValue"),
        ("&comp=block", {}, "InvalidQueryParameterValue"),
        ("&comp=block&blockid=", {}, "InvalidQueryParameterValue"),
        ("&comp=block&blockid=no base64!", {}, "InvalidQueryParameterValue"),
        ("&comp=block&blockid=" + base64.b64encode(b"x" * 65).decode(), {}, "InvalidQueryParameterValue"),
        ("&comp=metadata", {}, "InvalidQueryParameterValue"),
        ("&x=1" * 60, {}, "InvalidQueryParameterValue"),
        ("&comp=block&blockid=YQ==", {"content-md5": base64.b64encode(b"x" * 16).decode()}, "Md5Mismatch"),
    ],
)
def test_what_is_not_understood_stores_nothing(uploads, blob, query, headers, code):
    assert_refused(httpx.put(uploads.address + query, content=b"bytes", headers=headers), 400, code)
    assert nothing_is_stored(blob)


def test_a_right_md5_is_accepted(uploads, blob):
    right = base64.b64encode(hashlib.md5(b"bytes").digest()).decode()
    assert uploads.put(b"bytes", content_md5=right).status_code == 201
    assert content(blob) == b"bytes"


def test_a_blob_that_is_gone_is_not_found(uploads, blob):
    blobs.discard(blob)
    assert_refused(uploads.block("a", b"x"), 404, "BlobNotFound")
    assert_refused(uploads.commit("a"), 404, "BlobNotFound")
    assert_refused(uploads.put(b"x"), 404, "BlobNotFound")


def test_other_methods_and_addresses_are_refused(server, uploads):
    for method in ("GET", "POST", "DELETE", "PATCH"):
        answer = httpx.request(method, uploads.address)
        assert_refused(answer, 405, "UnsupportedHttpVerb")
        assert answer.headers["allow"] == "PUT"
    for path in ("/_blobs/", "/_blobs/upload/", "/_blobs/upload/1", "/_blobs/other/" + "0" * 36):
        assert_refused(httpx.put(server.url + path, content=b""), 404, "ResourceNotFound")


def test_a_block_over_the_limit_is_refused_and_nothing_is_stored(small_server, blob):
    uploads = Uploads(small_server, blob)
    assert_refused(uploads.block("a", bytes(MIB + 1)), 413, "RequestBodyTooLarge")
    assert_refused(uploads.block("a", iter([bytes(MIB), b"1"])), 413, "RequestBodyTooLarge")
    assert_refused(uploads.put(bytes(20 * MIB)), 413, "RequestBodyTooLarge")
    assert nothing_is_stored(blob)
    assert uploads.block("a", bytes(MIB)).status_code == 201


def test_a_length_far_over_the_limit_is_refused_before_a_byte_comes(small_server, blob):
    client = begun_upload(upload_address(small_server, blob), length=10 * 1024 * MIB)
    answer = client.getresponse()
    assert (answer.status, answer.headers["x-ms-error-code"]) == (413, "RequestBodyTooLarge")
    client.close()


def test_a_blob_over_the_limit_is_refused_and_keeps_its_blocks(small_server, blob):
    uploads = Uploads(small_server, blob)
    for name in "abc":
        assert uploads.block(name, bytes(MIB)).status_code == 201
    answer = uploads.block("d", b"1")
    assert_refused(answer, 413, "RequestBodyTooLarge")
    assert str(3 * MIB) in answer.text
    assert uploads.commit("a", "b", "c").status_code == 201
    assert len(files(blob)) == 3


def test_a_client_that_leaves_half_way_stores_nothing(server, uploads, blob):
    client = begun_upload(uploads.address, length=2 * MIB)
    client.send(bytes(MIB))
    client.close()
    # Blocks of others come and go meanwhile.
    other = blobs.create()
    assert Uploads(server, other).put(b"other").status_code == 201
    blobs.discard(other)
    assert nothing_is_stored(blob)
    assert uploads.put(b"again").status_code == 201
    assert content(blob) == b"again"


def test_a_server_that_is_killed_half_way_stores_nothing(transactional_db, tmp_path, blob):
    with Server(tmp_path / "log") as server:
        client = begun_upload(upload_address(server, blob), length=2 * MIB)
        client.send(bytes(MIB))
        server.kill()
        with pytest.raises((http.client.HTTPException, OSError)):
            client.getresponse()
        client.close()
    assert nothing_is_stored(blob)


def test_300_mib_pass_and_never_sit_in_memory(server, uploads, blob):
    # First a little, so that everything is loaded.
    other = blobs.create()
    warm = Uploads(server, other)
    warm.block("a", bytes(2 * MIB))
    warm.commit("a")
    before = peak(server)
    assert uploads.put(zeros(300 * MIB)).status_code == 201
    assert peak(server) - before < 24 * MIB
    blob.refresh_from_db()
    assert blob.size == 300 * MIB
    assert files(blob)[0].stat().st_size == 300 * MIB


def test_a_slow_client_holds_up_nobody(server, uploads, blob):
    """More of them than there are threads."""
    slow = [begun_upload(uploads.address, length=10) for _ in range(20)]
    for client in slow:
        client.send(b"12345")
    other = blobs.create()
    assert Uploads(server, other).put(b"fast").status_code == 201
    for client in slow:
        client.close()
    assert content(other) == b"fast"


def test_more_transfers_than_allowed_wait_for_their_turn(transactional_db, tmp_path, blob):
    with Server(tmp_path / "log", FORGE_BLOB_TRANSFERS="1") as server:
        first = begun_upload(upload_address(server, blob), length=3)
        first.send(b"on")
        parts = urlsplit(upload_address(server, other := blobs.create()))
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as second:
            head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\nx-ms-blob-type: BlockBlob\r\n"
            second.sendall(f"{head}Content-Length: 3\r\nConnection: close\r\n\r\ntwo".encode())
            second.settimeout(0.5)  # not for a race: it must not be answered however long this is
            with pytest.raises(TimeoutError):
                second.recv(1)
            first.send(b"e")
            assert first.getresponse().status == 201
            second.settimeout(60)
            assert second.recv(100).startswith(b"HTTP/1.1 201")
        first.close()
    assert (content(blob), content(other)) == (b"one", b"two")


def test_the_list_of_the_sdk_is_read(uploads, blob):
    uploads.block("a", b"one")
    document = block_list("a").replace("Latest", "Uncommitted").replace("><", ">\n  <")
    assert uploads.commit_document(document, content_type="application/xml; charset=utf-8").status_code == 201
    until(lambda: Blob.objects.get(pk=blob.pk).committed_at, what="the commit")
    assert content(blob) == b"one"

"""Do uploads and downloads of a server whose storage is a bucket do what those of a disk do?"""

import os

import httpx
import pytest

from ci.models import Blob
from ci.storage import blobs
from tests.api.server import Server
from tests.interop.blob_server import Uploads, assert_refused, download_address, peak, zeros
from tests.storage.s3_server import S3Server

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 2**20


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    bucket = S3Server(tmp_path_factory.mktemp("s3"))
    try:
        yield bucket.start()
    finally:
        bucket.stop()


@pytest.fixture(scope="module")
def server(bucket, django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock():
        started = Server(tmp_path_factory.mktemp("server") / "log", **bucket.environment)
    with started as server:
        yield server


@pytest.fixture(autouse=True)
def empty(bucket, transactional_db):
    yield
    bucket.empty()


def test_blocks_become_a_blob_and_come_back_whole_or_in_a_range(server, bucket):
    blob = blobs.create(content_type="application/zip")
    uploads = Uploads(server, blob)
    data = os.urandom(10 * MIB)
    assert uploads.block("b", data[MIB:]).status_code == 201
    assert uploads.block("a", data[:MIB]).status_code == 201
    assert uploads.block("left out", b"x").status_code == 201
    assert uploads.commit("a", "b").status_code == 201
    assert sorted(map(len, bucket.stored().values())) == [MIB, 9 * MIB]
    answer = httpx.get(download_address(server, blob), timeout=60)
    assert (answer.status_code, answer.content) == (200, data)
    asked = {"Range": f"bytes={MIB - 2}-{MIB + 1}"}
    answer = httpx.get(download_address(server, blob), headers=asked, timeout=60)
    assert (answer.status_code, answer.content) == (206, data[MIB - 2 : MIB + 2])


def test_200_mib_never_sit_in_memory(server):
    warm = Uploads(server, blobs.create())
    assert warm.put(bytes(20 * MIB)).status_code == 201
    blob = blobs.create()
    before = peak(server)
    assert Uploads(server, blob).put(zeros(200 * MIB)).status_code == 201
    size = 0
    with httpx.stream("GET", download_address(server, blob), timeout=60) as answer:
        for piece in answer.iter_raw():
            size += len(piece)
    assert size == 200 * MIB
    assert peak(server) - before < 48 * MIB


def test_a_bucket_that_is_gone_is_an_error_and_stores_nothing(django_db_blocker, tmp_path):
    nowhere = {"FORGE_S3_BUCKET": "b", "FORGE_S3_ENDPOINT": "http://127.0.0.1:9", "FORGE_S3_REGION": "r"}
    nowhere |= {"FORGE_S3_ACCESS_KEY": "k", "FORGE_S3_SECRET_KEY": "do-not-tell"}
    blob = blobs.create()
    with Server(tmp_path / "log", **nowhere) as server:
        assert_refused(Uploads(server, blob).put(b"x"), 500, "InternalError")
        assert "do-not-tell" not in server.log
    assert not Blob.objects.get().parts.exists()

"""Do blobs and logs lie in a bucket as well as on a disk?"""

import os

import obstore
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from ci.models import BlobPart, Job, LogChunk
from ci.storage import blob_orphans, blobs, files, log_orphans, logs
from tests.storage.blob_files import committed, content, put
from tests.storage.rows import add, make_job, texts
from tests.storage.s3_server import BUCKET, S3Server

BACKEND = {"BACKEND": "ci.storage.s3.S3"}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = S3Server(tmp_path_factory.mktemp("s3"))
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def bucket(server, settings):
    settings.STORAGES = {**settings.STORAGES, "default": {**BACKEND, "OPTIONS": server.options}}
    yield server
    server.empty()


def test_a_blob_is_objects_that_a_list_joins(bucket):
    blob = committed(b"abc", b"", b"defgh")
    assert sorted(bucket.stored().values()) == [b"", b"abc", b"defgh"]
    assert content(blob) == b"abcdefgh"
    for start in range(8):
        for end in range(start, 9):
            assert content(blob, start=start, end=end) == b"abcdefgh"[start:end]


def test_a_block_over_several_pieces_travels_from_a_file_and_back(bucket, tmp_path):
    data = os.urandom(20 * 2**20 + 1)
    (tmp_path / "block").write_bytes(data)
    blob = blobs.create()
    with (tmp_path / "block").open("rb") as source:
        blobs.put_part(blob=blob, block_id="a", source=source, size=len(data))
    blobs.commit(blob=blob, block_ids=["a"])
    assert content(blob) == data
    assert content(blob, start=2**20, end=2**20 + 5) == data[2**20 : 2**20 + 5]


def test_only_the_range_asked_for_travels(bucket, monkeypatch):
    name = default_storage.save("parts/00/x", ContentFile(bytes(files.PIECE * 10)))
    asked = []
    real = obstore.get
    monkeypatch.setattr(obstore, "get", lambda *given, **options: asked.append(options) or real(*given, **options))
    assert len(b"".join(files.pieces(name, start=5, end=10))) == 5
    assert asked == [{"options": {"range": (5, 10)}}]


def test_a_replaced_and_a_discarded_block_leave_nothing(bucket):
    blob = blobs.create()
    put(blob, "a", b"first")
    put(blob, "a", b"second")
    assert list(bucket.stored().values()) == [b"second"]
    blobs.discard(blob)
    assert bucket.stored() == {}


def test_more_blocks_than_one_call_deletes_go_all(bucket):
    for number in range(1_001):
        default_storage.save(f"parts/00/{number}", ContentFile(b""))
    default_storage.delete_all([f"parts/00/{number}" for number in range(1_001)])
    assert default_storage.listdir("parts/00") == ([], [])


def test_a_lost_object_is_noticed(bucket):
    blob = committed(b"abc")
    default_storage.delete(BlobPart.objects.get().file)
    with pytest.raises(blobs.BlobLost):
        content(blob)
    with pytest.raises(FileNotFoundError):
        default_storage.get_modified_time(BlobPart.objects.get().file)


@pytest.mark.parametrize("wrong", [{"bucket": "no-such-bucket"}, {"secret_key": "wrong"}])
def test_a_bucket_that_does_not_take_it_stores_nothing(settings, server, wrong):
    settings.STORAGES = {**settings.STORAGES, "default": {**BACKEND, "OPTIONS": server.options | wrong}}
    with pytest.raises(obstore.exceptions.BaseError):
        put(blobs.create(), "a", b"x")
    assert not BlobPart.objects.exists()


def test_objects_without_a_row_are_swept_when_they_are_old(bucket, monkeypatch):
    put(blobs.create(), "a", b"abc")
    BlobPart.objects.all().delete()
    assert blob_orphans.remove_orphaned_files() == 0
    monkeypatch.setattr(blob_orphans, "UNNAMED_FOR", -blob_orphans.UNNAMED_FOR)
    assert blob_orphans.remove_orphaned_files() == 1
    assert bucket.stored() == {}


def test_merged_logs_lie_there_too(bucket, monkeypatch):
    job_id = make_job().pk
    add(job_id, 0, *(f"line {number}" for number in range(2_500)))
    logs.seal(job_id)
    logs.merge(job_id)
    assert not LogChunk.objects.exists()
    assert [name for name in bucket.stored() if name.startswith("logs/")]
    assert texts(job_id, 2_400, 3) == ["line 2400", "line 2401", "line 2402"]
    assert log_orphans.remove_orphans() == 0
    Job.objects.all().delete()
    monkeypatch.setattr(log_orphans, "UNTOUCHED_FOR", -log_orphans.UNTOUCHED_FOR)
    assert log_orphans.remove_orphans() == 1
    assert bucket.stored() == {}


def test_the_bucket_of_the_tests_is_the_one_that_is_used(bucket):
    assert default_storage.bucket == BUCKET

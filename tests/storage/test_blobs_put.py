"""Is each block stored once, whatever is repeated, refused or cut off?"""

import io
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ci.models import BlobPart
from ci.storage import blob_orphans, blobs
from tests.storage.blob_files import age_files, content, put, stored

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(blobs):
    return blobs


def test_a_block_becomes_a_row_and_a_file(folder):
    part = put(blobs.create(), "a", b"bytes")
    assert BlobPart.objects.get() == part
    assert (part.block_id, part.size, part.position) == ("a", 5, None)
    assert stored(folder) == [b"bytes"]


def test_a_block_that_comes_again_replaces_the_first(folder, django_capture_on_commit_callbacks):
    blob = blobs.create()
    with django_capture_on_commit_callbacks(execute=True):
        put(blob, "a", b"first")
        put(blob, "a", b"the second")
    assert stored(folder) == [b"the second"]
    blobs.commit(blob=blob, block_ids=["a"])
    assert content(blob) == b"the second"


def test_blocks_of_two_blobs_have_nothing_to_do_with_each_other(folder):
    one, two = blobs.create(), blobs.create()
    put(one, "a", b"one")
    put(two, "a", b"two")
    blobs.commit(blob=one, block_ids=["a"])
    blobs.commit(blob=two, block_ids=["a"])
    assert (content(one), content(two)) == (b"one", b"two")


def test_after_the_commit_a_repeat_changes_nothing(folder):
    blob = blobs.create()
    part = put(blob, "a", b"bytes")
    blobs.commit(blob=blob, block_ids=["a"])
    assert put(blob, "a", b"other") == part
    assert content(blob) == b"bytes"
    assert stored(folder) == [b"bytes"]


@pytest.mark.parametrize(("block_id", "data"), [("a", b"of another size"), ("b", b"bytes")])
def test_after_the_commit_anything_else_is_refused(folder, block_id, data):
    blob = blobs.create()
    put(blob, "a", b"bytes")
    blobs.commit(blob=blob, block_ids=["a"])
    with pytest.raises(blobs.BlobCommitted):
        put(blob, block_id, data)
    assert stored(folder) == [b"bytes"]


def test_a_blob_that_is_gone_takes_no_block(folder):
    blob = blobs.create()
    blobs.discard(blob)
    with pytest.raises(blobs.BlobMissing):
        put(blob, "a", b"bytes")
    assert stored(folder) == []


def test_a_block_over_the_limit_is_refused(folder, settings):
    settings.BLOB_PART_BYTES = 4
    blob = blobs.create()
    put(blob, "a", b"four")
    with pytest.raises(blobs.BlobTooLarge, match="larger than 4"):
        put(blob, "b", b"five5")
    assert stored(folder) == [b"four"]


def test_a_blob_over_the_limit_is_refused_and_keeps_what_it_has(folder, settings, django_capture_on_commit_callbacks):
    settings.BLOB_BYTES = 10
    blob = blobs.create()
    put(blob, "a", b"123456")
    put(blob, "b", b"1234")
    with pytest.raises(blobs.BlobTooLarge):
        put(blob, "c", b"1")
    with pytest.raises(blobs.BlobTooLarge):
        put(blob, "a", b"1234567")
    with django_capture_on_commit_callbacks(execute=True):
        put(blob, "a", b"12345")  # what is replaced does not count
    assert stored(folder) == [b"1234", b"12345"]


def test_a_block_costs_the_same_however_many_there_are(folder):
    blob = blobs.create()
    put(blob, "a", b"123")
    put(blob, "b", b"45")
    with CaptureQueriesContext(connection) as asked:
        put(blob, "b", b"678")
    assert not [query["sql"] for query in asked if "SUM(" in query["sql"] or "COUNT(" in query["sql"]]
    blob.refresh_from_db()
    assert (blob.put_size, blob.put_count) == (6, 2)
    blobs.commit(blob=blob, block_ids=["a"])
    blob.refresh_from_db()
    assert (blob.put_size, blob.put_count) == (3, 1), "what the list left out is gone"


def test_a_blob_has_no_more_blocks_than_azures(folder, monkeypatch):
    monkeypatch.setattr(blobs, "MOST_PARTS", 2)
    blob = blobs.create()
    put(blob, "a", b"1")
    put(blob, "b", b"2")
    put(blob, "b", b"3")
    with pytest.raises(blobs.BlobTooLarge, match="number of blocks"):
        put(blob, "c", b"4")


def test_a_put_that_dies_before_its_row_leaves_a_file_that_a_sweep_removes(folder, monkeypatch):
    blob = blobs.create()

    def die(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(blobs, "_record", die)
        with pytest.raises(SystemExit):
            put(blob, "a", b"half")
    assert stored(folder) == [b"half"]
    assert blob_orphans.remove_orphaned_files() == 0, "it might be a put that goes on"
    put(blob, "a", b"again")
    age_files(folder)
    assert blob_orphans.remove_orphaned_files() == 1
    blobs.commit(blob=blob, block_ids=["a"])
    assert content(blob) == b"again"


def test_a_put_keeps_its_file_when_nobody_knows_whether_the_row_is_there(folder, monkeypatch):
    blob = blobs.create()
    record = blobs._record

    def lose_the_answer(*given):
        record(*given)
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(blobs, "_record", lose_the_answer)
    with pytest.raises(OperationalError):
        put(blob, "a", b"bytes")
    assert stored(folder) == [b"bytes"]


def test_a_put_that_took_so_long_that_a_sweep_may_have_its_file_is_refused(folder, monkeypatch):
    blob = blobs.create()
    record = blobs._record
    later = timezone.now() + blobs.PUT_TIME + timedelta(minutes=1)

    def hang(*given):
        part = record(*given)
        monkeypatch.setattr(blobs.timezone, "now", lambda: later)
        return part

    monkeypatch.setattr(blobs, "_record", hang)
    with pytest.raises(blobs.PutTooSlow):
        put(blob, "a", b"bytes")
    assert stored(folder) == []
    assert not BlobPart.objects.exists()


def test_a_full_storage_stores_nothing(folder, monkeypatch):
    blob = blobs.create()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(default_storage._wrapped), "_save", full)
    with pytest.raises(OSError, match="No space"):
        put(blob, "a", b"bytes")
    assert not BlobPart.objects.exists()


def test_all_at_once_is_put_and_commit_in_one_and_may_be_repeated(folder):
    blob = blobs.create(content_type="text/plain")
    put(blob, "a", b"left out")
    for _ in range(2):
        done = blobs.put_whole(blob=blob, source=io.BytesIO(b"all"), size=3, content_type="application/zip")
    assert (done.size, done.content_type) == (3, "application/zip")
    assert content(blob) == b"all"

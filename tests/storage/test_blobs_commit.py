"""Does a commit fix exactly the list it was given, or change nothing?"""

import time

import pytest

from ci.models import Blob, BlobPart
from ci.storage import blob_digests, blob_orphans, blobs, files
from tests.storage.blob_files import age_files, content, put, stored

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(blobs):
    return blobs


@pytest.fixture
def blob(folder):
    blob = blobs.create()
    for block_id, data in (("c", b"three"), ("a", b"one"), ("b", b"two")):
        put(blob, block_id, data)
    return blob


def test_the_list_gives_the_order(blob):
    done = blobs.commit(blob=blob, block_ids=["a", "b", "c"])
    assert (done.size, done.committed_at is not None) == (11, True)
    assert content(blob) == b"onetwothree"


def test_what_the_list_leaves_out_is_gone(blob, folder, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        blobs.commit(blob=blob, block_ids=["c", "a"])
    assert content(blob) == b"threeone"
    assert stored(folder) == [b"one", b"three"]
    assert BlobPart.objects.count() == 2


def test_the_type_is_the_commits_where_it_names_one():
    for given, kept in ((None, "text/plain"), ("application/zip", "application/zip")):
        blob = blobs.create(content_type="text/plain", content_encoding="gzip")
        done = blobs.commit(blob=blob, block_ids=[], content_type=given)
        assert (done.content_type, done.content_encoding) == (kept, "gzip")


def test_an_empty_list_makes_an_empty_blob(folder):
    blob = blobs.create()
    assert blobs.commit(blob=blob, block_ids=[]).size == 0
    assert content(blob) == b""
    assert blob_digests.digest(blob) == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_an_empty_block_is_a_block(folder):
    blob = blobs.create()
    put(blob, "a", b"")
    put(blob, "b", b"x")
    assert blobs.commit(blob=blob, block_ids=["a", "b"]).size == 1
    assert content(blob) == b"x"


def test_a_missing_block_is_named_and_nothing_changes(blob, folder):
    with pytest.raises(blobs.BlockMissing) as error:
        blobs.commit(blob=blob, block_ids=["a", "x", "b", "y"])
    assert error.value.block_ids == ["x", "y"]
    assert Blob.objects.get().committed_at is None
    assert len(stored(folder)) == 3
    assert blobs.commit(blob=blob, block_ids=["a", "b"]).size == 6


def test_a_block_listed_twice_is_refused_and_nothing_changes(blob):
    with pytest.raises(blobs.BlockRepeated):
        blobs.commit(blob=blob, block_ids=["a", "b", "a"])
    assert Blob.objects.get().committed_at is None
    assert set(BlobPart.objects.values_list("position", flat=True)) == {None}


def test_a_repeat_gives_the_same_answer_and_another_list_is_refused(blob):
    first = blobs.commit(blob=blob, block_ids=["a", "b"], content_type="application/zip")
    again = blobs.commit(blob=blob, block_ids=["a", "b"], content_type="text/plain")
    assert (again.committed_at, again.content_type) == (first.committed_at, "application/zip")
    for other in (["b", "a"], ["a"], ["a", "b", "c"], []):
        with pytest.raises(blobs.BlobCommitted):
            blobs.commit(blob=blob, block_ids=other)
    assert content(blob) == b"onetwo"


def test_a_blob_that_is_gone_cannot_be_committed(blob):
    blobs.discard(blob)
    with pytest.raises(blobs.BlobMissing):
        blobs.commit(blob=blob, block_ids=["a"])
    with pytest.raises(blobs.BlobMissing):
        blobs.commit_all(blob=blob)


def test_files_that_a_killed_commit_did_not_delete_are_swept(blob, folder, monkeypatch):

    with monkeypatch.context() as patch:
        patch.setattr(files, "delete_after_commit", lambda names: None)
        blobs.commit(blob=blob, block_ids=["b"])
    assert len(stored(folder)) == 3
    age_files(folder)
    assert blob_orphans.remove_orphaned_files() == 2
    assert content(blob) == b"two"


def test_thousands_of_blocks_are_joined_in_the_order_given(folder):
    blob = blobs.create()
    names = [f"{number:04d}" for number in range(2000)]
    rows = [BlobPart(blob=blob, block_id=name, size=1, file=f"parts/00/{name}") for name in names]
    BlobPart.objects.bulk_create(rows)
    backwards = names[::-1]
    assert blobs.commit(blob=blob, block_ids=backwards).size == 2000
    assert list(blob.parts.order_by("position").values_list("block_id", flat=True)) == backwards


def test_a_commit_of_as_many_blocks_as_there_may_be_takes_moments(folder):
    blob = blobs.create()
    names = [f"{number:05d}" for number in range(blobs.MOST_PARTS)]
    rows = [BlobPart(blob=blob, block_id=name, size=1, file=f"parts/00/{name}") for name in names]
    BlobPart.objects.bulk_create(rows)
    began = time.process_time()
    assert blobs.commit(blob=blob, block_ids=names[1:]).size == len(names) - 1
    assert time.process_time() - began < 15, "a set of the names is made once, and not for each of them"


def test_parts_named_by_their_offsets_are_joined_without_a_list(folder):
    blob = blobs.create()
    for offset, data in ((12, b"!"), (0, b"Hello"), (5, b", world")):
        put(blob, blobs.offset_id(offset), data)
    assert blobs.commit_all(blob=blob, size=13).size == 13
    assert content(blob) == b"Hello, world!"
    assert blobs.commit_all(blob=blob, size=13).size == 13, "a repeat changes nothing"


def test_offsets_are_numbers_and_not_texts(folder):
    blob = blobs.create()
    put(blob, blobs.offset_id(0), b"123456789")
    put(blob, blobs.offset_id(9), b"a")
    put(blob, blobs.offset_id(10), b"b")
    blobs.commit_all(blob=blob)
    assert content(blob) == b"123456789ab"


@pytest.mark.parametrize("offsets", [(0, 6), (1, 6), (0, 4)])
def test_a_hole_or_an_overlap_is_refused_and_nothing_changes(folder, offsets):
    blob = blobs.create()
    for offset in offsets:
        put(blob, blobs.offset_id(offset), b"12345")
    with pytest.raises(blobs.BlockMissing):
        blobs.commit_all(blob=blob)
    assert Blob.objects.get().committed_at is None


def test_another_size_than_promised_is_refused_and_nothing_changes(folder):
    blob = blobs.create()
    put(blob, blobs.offset_id(0), b"12345")
    with pytest.raises(blobs.SizeDiffers, match="has 5 bytes, and not 6"):
        blobs.commit_all(blob=blob, size=6)
    put(blob, blobs.offset_id(5), b"6")
    assert blobs.commit_all(blob=blob, size=6).size == 6

"""Blocks, lists and ends of one blob that meet: whoever holds its lock goes first, and no bytes are mixed or left."""

import pytest
from django.utils import timezone

from ci.models import Artifact, Blob, BlobPart
from ci.storage import blobs
from ci.storage.blob_orphans import remove_orphans
from tests.races.interleaving import rival_before
from tests.storage.blob_files import age_rows, content, put, stored
from tests.storage.conftest import blobs as folder
from tests.storage.rows import make_job

__all__ = ["folder"]

pytestmark = pytest.mark.django_db(transaction=True)

LOCK_BLOB = r'FROM "ci_blob" .*FOR (NO KEY )?UPDATE'
WRITE_PART = r'(INSERT INTO|UPDATE) "ci_blobpart"'
ORDER_PARTS = r"UPDATE ci_blobpart SET position"


@pytest.fixture
def blob(folder):
    return blobs.create()


def commit(blob, *block_ids):
    return blobs.commit(blob=blob, block_ids=block_ids)


def test_two_puts_of_a_block_that_is_new(blob, folder):
    with rival_before(WRITE_PART, lambda: put(blob, "a", b"the rival's")) as rival:
        put(blob, "a", b"the first")
    assert rival.waited_in and rival.error is None
    commit(blob, "a")
    assert content(blob) == b"the rival's"
    assert stored(folder) == [b"the rival's"]


def test_two_puts_of_a_block_that_was_there(blob, folder):
    put(blob, "a", b"old")
    with rival_before(WRITE_PART, lambda: put(blob, "a", b"the rival's")) as rival:
        put(blob, "a", b"the first")
    assert rival.waited_in and rival.error is None
    assert stored(folder) == [b"the rival's"]
    assert BlobPart.objects.get().size == len(b"the rival's")


def test_a_put_just_before_another_ones_lock(blob, folder):
    with rival_before(LOCK_BLOB, lambda: put(blob, "a", b"the rival's")) as rival:
        put(blob, "a", b"the last")
    assert (rival.waited_in, rival.error) == ("", None)
    assert stored(folder) == [b"the last"]


def test_puts_of_two_blocks_both_count(blob, folder, settings):
    settings.BLOB_BYTES = 8
    with rival_before(WRITE_PART, lambda: put(blob, "b", b"12345")) as rival:
        put(blob, "a", b"12345")
    assert isinstance(rival.error, blobs.BlobTooLarge), "each alone would fit"
    assert stored(folder) == [b"12345"]
    assert BlobPart.objects.get().block_id == "a"


def test_a_commit_waits_for_the_put_that_it_names(blob, folder):
    put(blob, "a", b"old")
    with rival_before(WRITE_PART, lambda: commit(blob, "a")) as rival:
        put(blob, "a", b"new")
    assert rival.waited_in and rival.result.size == 3
    assert content(blob) == b"new"
    assert stored(folder) == [b"new"]


def test_a_put_of_the_same_block_that_a_commit_overtakes_changes_nothing(blob, folder):
    put(blob, "a", b"old")
    with rival_before(LOCK_BLOB, lambda: commit(blob, "a")) as rival:
        assert put(blob, "a", b"new").position == 0
    assert rival.error is None
    assert content(blob) == b"old"
    assert stored(folder) == [b"old"]


def test_a_put_of_another_block_that_a_commit_overtakes_is_refused(blob, folder):
    put(blob, "a", b"old")
    with rival_before(LOCK_BLOB, lambda: commit(blob, "a")), pytest.raises(blobs.BlobCommitted):
        put(blob, "b", b"new")
    assert stored(folder) == [b"old"]
    assert BlobPart.objects.get().block_id == "a"


def test_a_put_during_a_commit_waits_and_changes_nothing(blob, folder):
    put(blob, "a", b"old")
    with rival_before(ORDER_PARTS, lambda: put(blob, "a", b"new")) as rival:
        commit(blob, "a")
    assert rival.waited_in and rival.error is None
    assert content(blob) == b"old"
    assert stored(folder) == [b"old"]


def test_a_put_of_another_block_during_a_commit_waits_and_is_refused(blob, folder):
    put(blob, "a", b"old")
    with rival_before(ORDER_PARTS, lambda: put(blob, "b", b"new")) as rival:
        commit(blob, "a")
    assert rival.waited_in and isinstance(rival.error, blobs.BlobCommitted)
    assert stored(folder) == [b"old"]


def test_two_commits_of_the_same_list_give_the_same_answer(blob):
    put(blob, "a", b"one")
    put(blob, "b", b"two")
    with rival_before(ORDER_PARTS, lambda: commit(blob, "b", "a")) as rival:
        first = commit(blob, "b", "a")
    assert rival.waited_in and rival.result.committed_at == first.committed_at
    assert content(blob) == b"twoone"


def test_of_two_commits_of_different_lists_one_is_refused(blob, folder):
    put(blob, "a", b"one")
    put(blob, "b", b"two")
    with rival_before(ORDER_PARTS, lambda: commit(blob, "b")) as rival:
        commit(blob, "a")
    assert rival.waited_in and isinstance(rival.error, blobs.BlobCommitted)
    assert content(blob) == b"one"
    assert stored(folder) == [b"one"]


def test_two_commits_of_all_give_the_same_answer(blob):
    put(blob, blobs.offset_id(0), b"one")
    with rival_before(ORDER_PARTS, lambda: blobs.commit_all(blob=blob, size=3)) as rival:
        first = blobs.commit_all(blob=blob, size=3)
    assert rival.waited_in and rival.result.committed_at == first.committed_at


def test_a_put_that_a_discard_overtakes_leaves_nothing(blob, folder):
    with rival_before(LOCK_BLOB, lambda: blobs.discard(blob)), pytest.raises(blobs.BlobMissing):
        put(blob, "a", b"bytes")
    assert stored(folder) == []


def test_a_discard_during_a_put_waits_and_takes_its_bytes_too(blob, folder):
    with rival_before(WRITE_PART, lambda: blobs.discard(blob)) as rival:
        put(blob, "a", b"bytes")
    assert rival.waited_in and rival.error is None
    assert not Blob.objects.exists()
    assert stored(folder) == []


def test_a_commit_during_a_discard_finds_nothing(blob, folder):
    put(blob, "a", b"bytes")
    with rival_before(r'DELETE FROM "ci_blob"', lambda: commit(blob, "a")) as rival:
        blobs.discard(blob)
    assert rival.waited_in and isinstance(rival.error, blobs.BlobMissing)
    assert stored(folder) == []


def test_a_commit_waits_for_the_sweep_of_its_parts_and_misses_them(folder):
    blob = blobs.create()
    job = make_job()
    Artifact.objects.create(run=job.run, attempt=1, name="a", blob=blob, expires_at=timezone.now())
    put(blob, "a", b"left for days")
    age_rows(days=3)
    with rival_before(r'DELETE FROM "ci_blobpart"', lambda: commit(blob, "a")) as rival:
        assert remove_orphans() == 1
    assert rival.waited_in and isinstance(rival.error, blobs.BlockMissing)
    assert stored(folder) == []

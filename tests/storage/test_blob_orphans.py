"""Does what nobody wants go, and stay what somebody wants or may want yet?"""

import pytest
from django.utils import timezone

from ci.lifecycle.tasks import remove_orphaned_blobs
from ci.models import Artifact, ArtifactFile, Blob, BlobPart, CacheEntry
from ci.storage import blob_orphans, blobs
from ci.storage.blob_orphans import remove_orphaned_files, remove_orphans
from tests.races.interleaving import amid
from tests.storage.blob_files import age_files, age_rows, committed, content, put, stored
from tests.storage.rows import make_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(blobs):
    return blobs


def artifact(blob, job=None):
    job = job or make_job()
    return Artifact.objects.create(run=job.run, attempt=1, name="a", blob=blob, expires_at=timezone.now())


def test_a_blob_that_lost_its_owner_goes_with_its_files(folder):
    committed(b"abc", b"def")
    put(blobs.create(), "a", b"not committed")
    age_rows(hours=2)
    assert remove_orphans() == 2
    assert not Blob.objects.exists()
    assert stored(folder) == []


def test_a_blob_whose_owner_may_come_yet_stays(folder):
    blob = committed(b"abc")
    assert remove_orphans() == 0
    age_rows(hours=2)
    Blob.objects.update(committed_at=timezone.now())
    assert remove_orphans() == 0, "its upload took two hours"
    assert content(blob) == b"abc"


def test_owned_blobs_stay(folder):
    job = make_job()
    artifact(committed(b"one"), job)
    folder_like = Artifact.objects.create(run=job.run, attempt=1, name="v3", expires_at=timezone.now())
    ArtifactFile.objects.create(artifact=folder_like, path="a/b", blob=committed(b"two"))
    CacheEntry.objects.create(
        repository=job.run.repository, ref="refs/heads/main", key="k", version="v", blob=committed(b"three")
    )
    age_rows(days=400)
    age_files(folder)
    assert remove_orphans() == 0
    assert remove_orphaned_files() == 0
    assert stored(folder) == [b"one", b"three", b"two"]


def test_an_owner_that_comes_while_the_sweep_looks_saves_the_blob(folder):
    blob, job = committed(b"abc"), make_job()
    age_rows(hours=2)
    with amid(r'FROM "ci_blob" .*FOR UPDATE', lambda: artifact(blob, job)):
        assert remove_orphans() == 0
    assert content(blob) == b"abc"


def test_an_upload_that_stopped_a_day_ago_loses_its_bytes_and_says_so_when_it_comes_back(folder):
    blob = blobs.create()
    artifact(blob)
    put(blob, "a", b"abc")
    age_rows(hours=23)
    assert remove_orphans() == 0
    age_rows(hours=25)
    assert remove_orphans() == 1
    assert remove_orphans() == 0
    assert stored(folder) == []
    with pytest.raises(blobs.BlockMissing):
        blobs.commit(blob=blob, block_ids=["a"])


def test_an_upload_that_goes_on_for_days_is_left_alone(folder):
    blob = blobs.create()
    artifact(blob)
    put(blob, "a", b"abc")
    age_rows(days=3)
    put(blob, "b", b"def")
    assert remove_orphans() == 0
    assert blobs.commit(blob=blob, block_ids=["a", "b"]).size == 6


def test_a_commit_while_the_sweep_looks_keeps_its_blocks(folder):
    blob = blobs.create()
    artifact(blob)
    put(blob, "a", b"abc")
    age_rows(days=3)
    with amid(r'FROM "ci_blob" .*FOR NO KEY UPDATE', lambda: blobs.commit(blob=blob, block_ids=["a"])):
        remove_orphans()
    assert content(blob) == b"abc"


def test_a_block_that_comes_while_the_sweep_looks_keeps_the_others(folder):
    blob = blobs.create()
    artifact(blob)
    put(blob, "a", b"abc")
    age_rows(days=3)
    with amid(r'FROM "ci_blob" .*FOR NO KEY UPDATE', lambda: put(blob, "b", b"def")):
        remove_orphans()
    assert blobs.commit(blob=blob, block_ids=["a", "b"]).size == 6


def test_at_most_so_many_go_at_once(folder):
    for _ in range(3):
        committed(b"abc")
    age_rows(hours=2)
    assert [remove_orphans(most=2), remove_orphans(most=2), remove_orphans(most=2)] == [2, 1, 0]


def test_files_without_a_row_go_when_no_put_can_still_name_them(folder):
    blob = committed(b"abc", b"def")
    BlobPart.objects.filter(position=1).delete()
    assert remove_orphaned_files() == 0
    age_files(folder)
    assert remove_orphaned_files(most=0) == 0
    assert remove_orphaned_files() == 1
    assert stored(folder) == [b"abc"]
    assert next(blobs.read(blob)) == b"abc"


def test_every_file_has_its_turn_once_a_day(folder):
    for number in range(256):
        path = folder / "parts" / f"{number:02x}" / "file"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    age_files(folder)
    assert sum(remove_orphaned_files(turn=hour) for hour in range(blob_orphans.TURNS)) == 256


def test_files_of_others_are_not_touched(folder):
    for name in ("logs/0/1.zst", "parts-of-others", "parts/zz/file"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    age_files(folder)
    assert remove_orphaned_files() == 0


def test_without_any_blob_there_is_nothing_to_do(folder):
    remove_orphaned_blobs()

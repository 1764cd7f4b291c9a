"""Two who begin, seal, or merge one log at once: the first seal counts, and the file that is recorded is there."""

import pytest
from django.core.files.storage import default_storage

from ci.models import Log, LogChunk
from ci.storage import logs
from tests.races.interleaving import rival_before
from tests.storage.rows import add, make_job, texts

WRITE_BLOB = r'UPDATE "ci_log" SET "blob"'

pytestmark = pytest.mark.django_db(transaction=True)


def sealed_log() -> int:
    job_id = make_job().pk
    add(job_id, 0, "one", "two")
    logs.seal(job_id)
    return job_id


def test_a_second_seal_changes_nothing(blobs):
    job_id = sealed_log()
    first = Log.objects.get(pk=job_id).sealed_at
    logs.seal(job_id)
    assert Log.objects.get(pk=job_id).sealed_at == first


@pytest.mark.parametrize("nth", [1, 2], ids=["before the name is recorded", "before the file is recorded"])
def test_a_merge_that_is_overtaken_loses_nothing(blobs, nth):
    job_id = sealed_log()
    with rival_before(WRITE_BLOB, lambda: logs.merge(job_id), nth=nth) as rival:
        logs.merge(job_id)
    assert rival.error is None
    assert texts(job_id) == ["one", "two"]
    blob = Log.objects.get(pk=job_id).blob
    assert not blob.endswith(".part")
    assert default_storage.exists(blob)
    assert len([path for path in blobs.rglob("*") if path.is_file()]) == 1


def test_the_first_lines_of_two_stand_one_after_the_other(blobs):
    job_id = make_job().pk
    with rival_before(r'INSERT INTO "ci_log"', lambda: add(job_id, 0, "one")) as rival:
        assert add(job_id, 0, "one", "two").next_offset == 2
    assert rival.error is None
    assert texts(job_id) == ["one", "two"]


def test_a_merge_that_is_overtaken_by_one_that_died_keeps_the_rows(blobs):
    job_id = sealed_log()
    overtake = lambda: Log.objects.filter(pk=job_id).update(blob="logs/0/another.zst.part")  # noqa: E731
    with rival_before(WRITE_BLOB, overtake, nth=2):
        logs.merge(job_id)
    assert texts(job_id) == ["one", "two"]
    assert LogChunk.objects.filter(job=job_id).exists()
    assert not [path for path in blobs.rglob("*") if path.is_file()]


def test_a_log_of_which_rows_are_missing_keeps_those_that_there_are(blobs):
    job_id = make_job().pk
    add(job_id, 0, "one")
    add(job_id, 1, "two")
    logs.seal(job_id)
    LogChunk.objects.filter(job=job_id, first_line=1).delete()
    logs.merge(job_id)
    assert texts(job_id) == ["one"]
    assert LogChunk.objects.filter(job=job_id).count() == 1

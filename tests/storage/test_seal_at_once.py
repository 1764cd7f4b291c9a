"""Two who seal, or merge, one log at once: the first seal counts, and the file that is recorded is there."""

import pytest
from django.core.files.storage import default_storage

from ci.models import Log
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

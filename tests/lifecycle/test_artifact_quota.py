"""Do the artifacts of a repository stay within its quota, with what is only being uploaded?"""

from datetime import timedelta
from io import BytesIO

import pytest
from django.utils import timezone

from ci.lifecycle import artifact_folders, artifact_quota, artifacts
from ci.lifecycle.artifact_quota import QuotaExceeded, artifact_bytes, check_block
from ci.models import Artifact
from ci.storage import blobs
from tests.lifecycle.artifact_making import keep, keep_folder, on, put

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(playground, settings):
    settings.ARTIFACT_QUOTA_BYTES = 10
    return on(playground)


def test_whole_unfinished_and_folders_count_and_what_has_expired_does_not(job, settings):
    settings.ARTIFACT_QUOTA_BYTES = 100
    keep(job, "whole", b"123")
    begun = artifacts.create_artifact(job=job, name="begun")
    blobs.put_part(blob=begun.blob, block_id="a", source=BytesIO(b"12345"), size=5)
    keep_folder(job, "folder", a=b"1", b=b"2")
    part = artifact_folders.open_folder(job=job, name="part")
    artifact_folders.put_file(
        job=job, artifact_id=part.pk, item_path="part/a", source=BytesIO(b"1234567"), start=0, size=7, total=9
    )
    assert artifact_bytes(job.run.repository) == 3 + 5 + 2 + 7
    Artifact.objects.filter(name="folder").update(expires_at=timezone.now() - timedelta(seconds=1))
    Artifact.objects.filter(name="whole").update(expires_at=timezone.now() - timedelta(seconds=1), blob=None, size=3)
    assert artifact_bytes(job.run.repository) == 5 + 7


def test_nothing_is_begun_where_there_is_no_room(job):
    keep(job, "a", b"x" * 10)
    for begin in (artifacts.create_artifact, artifact_folders.open_folder):
        with pytest.raises(QuotaExceeded, match="take 10 of the 10 bytes"):
            begin(job=job, name="b")
    artifacts.delete_artifact(artifact_id=Artifact.objects.get().pk, job=job)
    keep(job, "b")


def test_a_block_that_does_not_fit_is_refused(job):
    keep(job, "a", b"123456")
    begun = artifacts.create_artifact(job=job, name="b")
    check_block(begun.blob, size=4)
    with pytest.raises(QuotaExceeded, match="no room for 5 more"):
        check_block(begun.blob, size=5)
    check_block(blobs.create(), size=2**40)  # a cache's: these have a quota of their own


def test_a_file_of_a_folder_that_does_not_fit_is_refused(job):
    folder = artifact_folders.open_folder(job=job, name="folder")
    put(job, folder, "a", b"x" * 9)
    with pytest.raises(QuotaExceeded):
        put(job, folder, "b", b"xx")
    assert artifact_quota.artifact_bytes(job.run.repository) == 9


def test_other_repositories_have_their_own(job, playground):
    keep(job, "a", b"x" * 10)
    other = type(job.run.repository).objects.create(owner=playground.alice, name="other")
    assert artifact_bytes(other) == 0

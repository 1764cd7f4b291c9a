"""Is room made of what is kept for nobody, and of nothing else?"""

from datetime import timedelta

import pytest
from django.utils import timezone

from ci.lifecycle import artifact_folders, artifacts
from ci.lifecycle.artifact_sweeps import expire_artifacts, remove_abandoned, tidy_artifacts
from ci.models import Artifact, ArtifactFile, Blob
from tests.lifecycle.artifact_making import fill, job_of, keep, keep_folder, put
from tests.lifecycle.test_keep_artifacts import TWO_JOBS


@pytest.fixture
def assigned(playground):
    playground.run()
    return playground.assigned().begin()


@pytest.fixture
def job(assigned):
    return job_of(assigned)


def age(rows, days):
    rows.update(created_at=timezone.now() - timedelta(days=days))


def test_the_bytes_of_what_expired_go_and_its_row_stays(job):
    made, folder, kept = keep(job, "zip"), keep_folder(job, "folder", a=b"1"), keep(job, "kept")
    Artifact.objects.exclude(pk=kept.pk).update(expires_at=timezone.now())
    assert expire_artifacts() == 2
    for one in (made, folder):
        before = (one.name, one.size, one.digest)
        one.refresh_from_db()
        assert (one.blob, one.files.count()) == (None, 0)
        assert (one.name, one.size, one.digest) == before
    assert list(Blob.objects.filter(artifact__isnull=False)) == [kept.blob]
    assert expire_artifacts() == 0


def test_nothing_is_given_up_while_its_job_runs(job):
    artifacts.create_artifact(job=job, name="zip")
    artifact_folders.open_folder(job=job, name="folder")
    age(Artifact.objects, days=3)
    assert remove_abandoned() == 0
    assert Artifact.objects.count() == 2


def test_what_a_run_left_unfinished_goes_when_it_has_ended(assigned, job):
    fill(artifacts.create_artifact(job=job, name="zip"), b"half")
    artifact_folders.open_folder(job=job, name="folder")
    keep(job, "kept")
    assigned.complete("failure")
    assert remove_abandoned() == 2
    assert [one.name for one in Artifact.objects.all()] == ["kept"]
    assert Blob.objects.count() == 1
    assert remove_abandoned() == 0


def test_what_a_dead_job_left_goes_after_a_day_while_the_run_goes_on(playground):
    playground.run(TWO_JOBS)
    assigned = playground.assigned().begin()
    artifacts.create_artifact(job=job_of(assigned), name="zip")
    assigned.complete("failure")
    assert remove_abandoned() == 0
    age(Artifact.objects, days=2)
    assert remove_abandoned() == 1
    assert not Artifact.objects.exists()


def test_a_folder_that_a_dead_job_began_stays_while_another_of_the_run_may_fill_it(playground):
    playground.run(TWO_JOBS)
    first, second = [playground.assigned(playground.runner(name=name)).begin() for name in ("alpha", "beta")]
    folder = artifact_folders.open_folder(job=job_of(first), name="folder")
    put(job_of(first), folder, "a", b"1")
    first.complete("failure")
    age(Artifact.objects, days=2)
    assert remove_abandoned() == 0
    put(job_of(second), folder, "b", b"2")
    second.complete("success")
    assert remove_abandoned() == 1


def test_a_file_that_stays_half_goes_after_a_day_and_its_artifact_stays(job):
    folder = keep_folder(job, "folder", a=b"1")
    half = ArtifactFile.objects.create(artifact=folder, path="half", blob=Blob.objects.create())
    assert remove_abandoned() == 0
    age(Blob.objects, days=2)
    assert remove_abandoned() == 1
    assert not ArtifactFile.objects.filter(pk=half.pk).exists()
    assert [file.path for file in artifact_folders.files_of(folder)] == ["a"]


def test_it_goes_on_until_all_is_done(job, monkeypatch):
    monkeypatch.setattr("ci.lifecycle.artifact_sweeps.BATCH", 2)
    for number in range(5):
        keep(job, f"zip {number}")
    Artifact.objects.update(expires_at=timezone.now())
    tidy_artifacts()
    assert not Blob.objects.exists()
    assert Artifact.objects.count() == 5


def test_one_that_fails_does_not_keep_the_others(job, monkeypatch):
    first, second = keep(job, "first"), keep(job, "second")
    Artifact.objects.update(expires_at=timezone.now())
    lost = first.blob

    def discard(blob):
        if blob == lost:
            raise OSError("the storage is away")
        blob.delete()

    monkeypatch.setattr("ci.lifecycle.artifact_sweeps.blobs.discard", discard)
    assert expire_artifacts() == 2
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.blob, second.blob) == (lost, None)

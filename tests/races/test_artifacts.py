"""Artifacts: whoever makes, finishes or deletes one in a run waits for whoever does so there, and for the job's end."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from io import BytesIO

import pytest
from django.utils import timezone

from ci.lifecycle import artifact_folders, artifacts, transitions
from ci.lifecycle.artifact_sweeps import expire_artifacts, remove_abandoned
from ci.lifecycle.errors import AlreadyExists, Conflict, JobEnded, NotFound, Unauthenticated
from ci.models import Artifact, ArtifactFile, Blob, Job
from ci.storage import blobs
from forge.repositories import delete_repository
from tests.lifecycle.artifact_making import fill, job_of, keep, keep_folder, put
from tests.lifecycle.test_keep_artifacts import TWO_JOBS
from tests.playground import Assigned, Playground
from tests.races.interleaving import LOCK_RUN, amid, rival_before

INSERT = r'INSERT INTO "ci_artifact"'
INSERT_FILE = r'INSERT INTO "ci_artifactfile"'
FINISH = r'UPDATE "ci_artifact" SET "size"'
DELETE = r'DELETE FROM "ci_artifact"'
WAITING = 'SELECT "ci_run"'


def pair(playground: Playground) -> tuple[Assigned, Assigned]:
    """Two running jobs of one run."""
    playground.run(TWO_JOBS)
    first, second = [playground.assigned(playground.runner(name=name)).begin() for name in ("alpha", "beta")]
    return first, second


def alone(playground: Playground) -> Assigned:
    playground.run()
    return playground.assigned(playground.runner()).begin()


def test_of_two_jobs_that_make_a_name_at_once_one_gets_it(committing_playground: Playground) -> None:
    one, two = map(job_of, pair(committing_playground))
    with rival_before(INSERT, lambda: artifacts.create_artifact(job=two, name="a")) as rival:
        artifacts.create_artifact(job=one, name="a")
    assert rival.waited_in.startswith(WAITING)
    assert isinstance(rival.error, AlreadyExists)
    assert Artifact.objects.get().job == one
    assert Blob.objects.count() == 1


def test_two_jobs_that_open_a_folder_at_once_share_it(committing_playground: Playground) -> None:
    one, two = map(job_of, pair(committing_playground))
    with rival_before(INSERT, lambda: artifact_folders.open_folder(job=two, name="a")) as rival:
        made = artifact_folders.open_folder(job=one, name="a")
    assert rival.waited_in.startswith(WAITING)
    assert rival.result == made
    assert Artifact.objects.count() == 1


def test_two_jobs_that_begin_a_file_at_once_leave_one_file(committing_playground: Playground) -> None:
    one, two = map(job_of, pair(committing_playground))
    folder = artifact_folders.open_folder(job=one, name="a")
    with rival_before(INSERT_FILE, lambda: put(two, folder, "file", b"two's")) as rival, suppress(blobs.BlobMissing):
        put(one, folder, "file", b"one's")
    # Whoever began last has replaced what the other had, whether that was finished by then or not.
    assert (rival.error, rival.waited_in.startswith(WAITING)) == (None, True)
    assert b"".join(blobs.read(ArtifactFile.objects.get().blob)) == b"two's"
    assert Blob.objects.count() == 1


def test_a_job_that_ends_waits_for_what_it_makes(committing_playground: Playground) -> None:
    assigned = alone(committing_playground)
    job = job_of(assigned)
    with rival_before(INSERT, assigned.complete) as rival:
        made = artifacts.create_artifact(job=job, name="a")
    assert rival.waited_in.startswith(WAITING)
    assert (rival.error, made.job) == (None, job)
    with pytest.raises(JobEnded):
        artifacts.create_artifact(job=job, name="b")


def test_a_job_that_has_just_ended_makes_nothing(committing_playground: Playground) -> None:
    assigned = alone(committing_playground)
    job = job_of(assigned)
    with amid(LOCK_RUN, assigned.complete), pytest.raises(JobEnded):
        artifacts.create_artifact(job=job, name="a")
    assert not Artifact.objects.exists()


def test_a_job_that_was_just_given_to_another_runner_makes_nothing(committing_playground: Playground) -> None:
    job = job_of(alone(committing_playground))
    moved = lambda: Job.objects.filter(pk=job.pk).update(assignment=2)  # noqa: E731
    with amid(LOCK_RUN, moved), pytest.raises(Unauthenticated):
        artifacts.create_artifact(job=job, name="a")
    assert not Artifact.objects.exists()


def ready(job: Job) -> Artifact:
    """Uploaded and not finalized."""
    made = artifacts.create_artifact(job=job, name="a")
    fill(made, b"zip")
    return made


def test_a_job_that_ends_before_it_has_finished_leaves_nothing_to_see(committing_playground: Playground) -> None:
    assigned = alone(committing_playground)
    job = job_of(assigned)
    made = ready(job)
    with amid(LOCK_RUN, assigned.complete), pytest.raises(JobEnded):
        artifacts.finalize_artifact(job=job, name="a", size=3)
    assert not artifacts.artifacts_of(made.run).exists()


def test_what_began_anew_is_not_finished_with_the_old_bytes(committing_playground: Playground) -> None:
    job = job_of(alone(committing_playground))
    old = ready(job)
    again = lambda: artifacts.create_artifact(job=job, name="a")  # noqa: E731
    with rival_before(LOCK_RUN, again) as rival, pytest.raises(Conflict, match="began anew"):
        artifacts.finalize_artifact(job=job, name="a", size=3)
    assert rival.error is None
    assert Artifact.objects.get().finalized_at is None
    assert not Blob.objects.filter(pk=old.blob_id).exists()


def test_what_is_finished_twice_at_once_is_finished_once(committing_playground: Playground) -> None:
    job = job_of(alone(committing_playground))
    ready(job)
    finish = lambda: artifacts.finalize_artifact(job=job, name="a", size=3)  # noqa: E731
    with rival_before(FINISH, finish) as rival:
        first = finish()
    assert rival.waited_in.startswith(WAITING)
    assert rival.result.finalized_at == first.finalized_at


def test_what_two_people_delete_at_once_is_deleted_once(committing_playground: Playground) -> None:
    made = keep(job_of(alone(committing_playground)), "a")
    delete = lambda: artifacts.delete_artifact(artifact_id=made.pk, actor=None)  # noqa: E731
    with rival_before(DELETE, delete) as rival:
        delete()
    assert rival.waited_in.startswith(WAITING)
    assert isinstance(rival.error, NotFound)
    assert not Blob.objects.exists()


def test_a_sweep_leaves_what_is_finished_just_then(committing_playground: Playground) -> None:
    ready(job_of(alone(committing_playground)))
    Artifact.objects.update(job=None, created_at=timezone.now() - timedelta(days=2))
    with amid(LOCK_RUN, lambda: Artifact.objects.update(finalized_at=timezone.now())):
        assert remove_abandoned() == 1
    assert Artifact.objects.get().name == "a"


def test_what_is_given_up_is_not_finished_any_more(committing_playground: Playground) -> None:
    """Its job waits for a runner, and is given to one just when the sweep has seen that none has it."""
    playground = committing_playground
    playground.run()
    assigned = playground.assigned()
    ready(job_of(assigned))
    beta = playground.runner(name="beta")
    transitions.requeue_job(job_id=assigned.id, actor=playground.operator)
    Artifact.objects.update(created_at=timezone.now() - timedelta(days=2))

    def take_and_finish() -> None:
        again = job_of(playground.assigned(beta))
        artifacts.finalize_artifact(job=again, name="a", size=3)

    with rival_before(DELETE, take_and_finish) as rival:
        assert remove_abandoned() == 1
    assert rival.waited_in.startswith(WAITING)
    assert isinstance(rival.error, Conflict)
    assert not Artifact.objects.exists()


def half(playground: Playground) -> ArtifactFile:
    """A file that nobody went on with for days."""
    job = job_of(alone(playground))
    folder = artifact_folders.open_folder(job=job, name="folder")
    artifact_folders.put_file(
        job=job, artifact_id=folder.pk, item_path="folder/a", source=BytesIO(b"1"), start=0, size=1, total=2
    )
    Blob.objects.update(created_at=timezone.now() - timedelta(days=2))
    return ArtifactFile.objects.select_related("blob").get()


def test_whose_file_is_given_up_does_not_hear_that_it_is_complete(committing_playground: Playground) -> None:
    blob = half(committing_playground).blob
    with rival_before(r'DELETE FROM "ci_artifactfile"', lambda: blobs.commit_all(blob=blob)) as rival:
        assert remove_abandoned() == 1
    assert isinstance(rival.error, blobs.BlobMissing)
    assert not ArtifactFile.objects.exists()


def test_a_file_that_is_begun_anew_just_then_is_not_given_up(
    committing_playground: Playground, caplog: pytest.LogCaptureFixture
) -> None:
    old = half(committing_playground).blob

    def begin_anew() -> None:
        ArtifactFile.objects.update(blob=blobs.create())
        blobs.discard(old)

    with amid(LOCK_RUN, begin_anew):
        remove_abandoned()
    assert ArtifactFile.objects.get().blob_id != old.pk
    assert "failed" not in caplog.text


def test_who_begins_a_file_anew_waits_for_who_gives_it_up(committing_playground: Playground) -> None:
    file = half(committing_playground)
    folder = file.artifact
    assert folder.job is not None
    job = folder.job
    with rival_before(r'DELETE FROM "ci_artifactfile"', lambda: put(job, folder, "a", b"anew")) as rival:
        assert remove_abandoned() == 1
    assert rival.error is None
    assert rival.waited_in.startswith(WAITING)
    assert b"".join(blobs.read(ArtifactFile.objects.get().blob)) == b"anew"


def test_an_artifact_that_is_deleted_while_it_expires_goes_once(
    committing_playground: Playground, caplog: pytest.LogCaptureFixture
) -> None:
    made = keep(job_of(alone(committing_playground)), "a")
    Artifact.objects.update(expires_at=timezone.now() - timedelta(days=1))
    delete = lambda: artifacts.delete_artifact(artifact_id=made.pk)  # noqa: E731
    with rival_before(r'UPDATE "ci_artifact" SET "blob_id"', delete) as rival:
        assert expire_artifacts() == 1
    assert rival.error is None
    assert rival.waited_in.startswith(WAITING)
    assert "failed" not in caplog.text
    assert not Artifact.objects.exists() and not Blob.objects.exists()


def test_a_repository_is_deleted_with_what_it_kept(committing_playground: Playground) -> None:
    job = job_of(alone(committing_playground))
    keep(job, "a")
    keep_folder(job, "folder", file=b"x")
    transitions.cancel_run(run_id=job.run_id, actor=committing_playground.alice, force=True)
    delete_repository(repository=committing_playground.repository)
    assert not Artifact.objects.exists()
    assert Blob.objects.filter(artifact=None, artifact_file=None).count() == 2  # for the sweep of orphans

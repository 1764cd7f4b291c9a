"""Who may make and delete which artifact, and until when is it kept? (What clients see: tests/interop.)"""

from datetime import timedelta

import pytest
from django.utils import timezone

from ci.lifecycle import artifact_folders, artifacts, storage_policies, transitions
from ci.lifecycle.artifact_downloads import address, filename, folder_zip
from ci.lifecycle.errors import AlreadyExists, Conflict, Expired, InvalidInput, JobEnded, NotFound
from ci.models import Artifact, ArtifactFile, Blob, Event, StoragePolicy
from tests.lifecycle.artifact_making import fill, job_of, keep, keep_folder, on, put

TWO_JOBS = """
    on: push
    jobs:
      first:
        runs-on: linux
        steps:
          - run: echo
      second:
        runs-on: linux
        steps:
          - run: echo
"""


@pytest.fixture
def pair(playground):
    """Two running jobs of one run, as their runners have them."""
    playground.run(TWO_JOBS)
    return [playground.assigned(playground.runner(name=name)).begin() for name in ("alpha", "beta")]


def test_what_another_running_job_uploads_keeps_its_name(pair):
    first, second = map(job_of, pair)
    artifacts.create_artifact(job=first, name="shared")
    with pytest.raises(AlreadyExists, match="first is uploading"):
        artifacts.create_artifact(job=second, name="shared")
    assert Artifact.objects.get().job == first


def test_what_a_dead_job_left_unfinished_is_taken_over(pair):
    first, second = map(job_of, pair)
    fill(artifacts.create_artifact(job=first, name="shared"), b"half of it")
    pair[0].complete("failure")
    made = artifacts.create_artifact(job=second, name="shared")
    assert (Artifact.objects.get(), made.job) == (made, second)
    assert Blob.objects.get() == made.blob


def test_only_the_job_that_made_it_finalizes_it(pair):
    first, second = map(job_of, pair)
    fill(artifacts.create_artifact(job=first, name="shared"), b"zip")
    with pytest.raises(NotFound):
        artifacts.finalize_artifact(job=second, name="shared", size=3)
    assert Artifact.objects.get().finalized_at is None


def test_a_name_is_taken_by_either_protocol(playground):
    job = on(playground)
    keep(job, "zip")
    keep_folder(job, "folder", file=b"x")
    with pytest.raises(AlreadyExists):
        artifact_folders.open_folder(job=job, name="zip")
    with pytest.raises(AlreadyExists):
        artifacts.create_artifact(job=job, name="folder")
    with pytest.raises(NotFound):
        artifact_folders.close_folder(job=job, name="zip")
    with pytest.raises(NotFound):
        artifacts.finalize_artifact(job=job, name="nothing", size=1)


def test_a_folder_has_only_so_many_files(playground, monkeypatch):
    monkeypatch.setattr(artifact_folders, "MAX_FILES", 2)
    job = on(playground)
    folder = keep_folder(job, "folder", a=b"1", b=b"2")
    with pytest.raises(Conflict, match="at most 2 files"):
        put(job, folder, "c", b"3")
    put(job, folder, "a", b"replaced")
    assert artifact_folders.close_folder(job=job, name="folder").size == len(b"replaced2")


def test_a_folder_has_only_so_many_bytes(playground, settings):
    job = on(playground)
    settings.BLOB_BYTES = 4
    folder = keep_folder(job, "folder", a=b"12")
    with pytest.raises(Conflict, match="at most 4 bytes"):
        put(job, folder, "c", b"345")
    put(job, folder, "b", b"34")


def test_a_person_deletes_it_with_its_bytes(playground):
    job = on(playground)
    made = keep(job, "zip")
    artifacts.delete_artifact(artifact_id=made.pk, actor=playground.alice)
    assert not Artifact.objects.exists()
    assert not Blob.objects.exists()
    event = Event.objects.get(kind="artifact_deleted")
    assert (event.run_id, event.actor, event.detail) == (job.run_id, playground.alice, "zip")
    with pytest.raises(NotFound):
        artifacts.delete_artifact(artifact_id=made.pk, actor=playground.alice)


def test_what_is_being_uploaded_is_nobodys_to_delete(playground):
    made = artifacts.create_artifact(job=on(playground), name="zip")
    with pytest.raises(NotFound):
        artifacts.delete_artifact(artifact_id=made.pk, actor=playground.alice)
    assert Artifact.objects.exists()


def test_an_ended_job_deletes_nothing(pair):
    job = job_of(pair[0])
    made = keep(job, "zip")
    pair[0].complete()
    with pytest.raises(JobEnded):
        artifacts.delete_artifact(artifact_id=made.pk, job=job)
    assert Artifact.objects.exists()


def test_of_each_name_the_newest_comes_first(playground):
    run, runner = playground.run(), playground.runner()
    made = []
    for attempt in (1, 2):
        assigned = playground.assigned(runner).begin()
        made += [keep(job_of(assigned), name) for name in ("a", "b")]
        assigned.complete("failure")
        if attempt == 1:
            transitions.rerun(run_id=run.pk, actor=playground.alice, mode="all")
    order = [("a", 2), ("a", 1), ("b", 2), ("b", 1)]
    assert list(artifacts.artifacts_of(run).values_list("name", "attempt")) == order
    Artifact.objects.filter(pk=made[2].pk).update(expires_at=timezone.now())
    assert list(artifacts.artifacts_of(run).values_list("name", "attempt")) == order
    assert list(artifacts.visible_artifacts(run).values_list("name", "attempt")) == order[1:]
    newest = [(one.name, one.attempt) for one in artifacts.artifacts_in(playground.repository)]
    assert newest == [("b", 2), ("a", 2), ("b", 1), ("a", 1)]


@pytest.mark.parametrize(
    ("asked", "days"),
    [({}, 30), ({"retention_days": 5}, 5), ({"retention_days": 31}, 30), ({"retention_days": 400}, 30)],
)
def test_it_is_kept_as_long_as_the_repository_says_or_less(playground, asked, days):
    actor = playground.alice
    storage_policies.set_policy(repository=playground.repository, artifact_days=30, cache_bytes=None, actor=actor)
    made = artifacts.create_artifact(job=on(playground), name="zip", **asked)
    assert abs(made.expires_at - made.created_at - timedelta(days=days)) < timedelta(minutes=1)


def test_an_end_beyond_what_the_repository_allows_is_brought_forward(playground):
    later = timezone.now() + timedelta(days=200)
    made = artifacts.create_artifact(job=on(playground), name="zip", expires_at=later)
    assert abs(made.expires_at - made.created_at - timedelta(days=90)) < timedelta(minutes=1)


def test_without_a_policy_it_is_kept_as_long_as_the_instance_says(playground, settings):
    settings.ARTIFACT_DAYS = 7
    job = on(playground)
    made = artifacts.create_artifact(job=job, name="zip")
    assert abs(made.expires_at - made.created_at - timedelta(days=7)) < timedelta(minutes=1)
    with pytest.raises(InvalidInput, match="one day at least"):
        artifacts.create_artifact(job=job, name="other", retention_days=0)


def test_the_context_says_how_long_it_is_kept(playground):
    storage_policies.set_policy(
        repository=playground.repository, artifact_days=30, cache_bytes=None, actor=playground.alice
    )
    playground.run()
    assert playground.assigned().payload["contexts"]["github"]["retention_days"] == "30"


@pytest.mark.parametrize(("days", "cache_bytes"), [(0, None), (401, None), (-1, None), (None, -1), (None, 2**51)])
def test_a_policy_beyond_the_bounds_is_refused(playground, days, cache_bytes):
    with pytest.raises(InvalidInput):
        storage_policies.set_policy(
            repository=playground.repository, artifact_days=days, cache_bytes=cache_bytes, actor=playground.operator
        )
    assert not StoragePolicy.objects.exists()


@pytest.mark.parametrize(
    ("name", "content_type", "saved"),
    [
        ("result", "application/zip", "result.zip"),
        ("result", "zip", "result.zip"),
        ("result", "", "result.zip"),
        ("result.zip", "application/zip", "result.zip"),
        ("page.html", "text/html", "page.html"),
    ],
)
def test_it_is_saved_under_a_name_that_says_what_it_is(playground, name, content_type, saved):
    made = keep(on(playground), name)
    made.blob.content_type = content_type
    assert filename(made) == saved


def test_what_has_expired_is_not_handed_out(playground):
    job = on(playground)
    made, folder = keep(job, "zip"), keep_folder(job, "folder", a=b"x")
    Artifact.objects.update(expires_at=timezone.now())
    made.refresh_from_db()
    folder.refresh_from_db()
    for expired in (made, folder):
        with pytest.raises(Expired):
            address(expired)
    with pytest.raises(NotFound):
        folder_zip(folder.pk)


def test_deleting_a_folder_leaves_its_bytes_to_the_sweep(playground):
    folder = keep_folder(on(playground), "folder", a=b"1", b=b"2")
    artifacts.delete_artifact(artifact_id=folder.pk, actor=playground.alice)
    assert not ArtifactFile.objects.exists()
    assert Blob.objects.filter(artifact=None, artifact_file=None).count() == 2

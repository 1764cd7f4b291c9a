"""Are a blob's rows and files gone together, and only with the caller's transaction?"""

import pytest
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import ProtectedError
from django.utils import timezone

from ci.models import Artifact, Blob, BlobPart
from ci.storage import blobs, files
from tests.storage.blob_files import committed, stored
from tests.storage.rows import make_job


@pytest.fixture(autouse=True)
def folder(blobs):
    return blobs


@pytest.mark.django_db(transaction=True)
def test_rows_and_files_go_and_a_repeat_changes_nothing(folder):
    blob, other = committed(b"abc", b"def"), committed(b"other")
    blobs.discard(blob)
    blobs.discard(blob)
    assert stored(folder) == [b"other"]
    assert list(Blob.objects.all()) == [other]
    assert BlobPart.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_rollback_keeps_the_bytes(folder):
    blob = committed(b"abc")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        blobs.discard(blob)
        raise ZeroDivisionError
    assert stored(folder) == [b"abc"]
    assert b"".join(blobs.read(blob)) == b"abc"


@pytest.mark.django_db(transaction=True)
def test_a_storage_that_fails_does_not_fail_the_caller(folder, monkeypatch):
    blob = committed(b"abc", b"def")
    delete = type(default_storage._wrapped).delete
    first = BlobPart.objects.get(position=0).file

    def fail_once(storage, name):
        if name == first:
            raise OSError("no answer")
        delete(storage, name)

    monkeypatch.setattr(type(default_storage._wrapped), "delete", fail_once)
    blobs.discard(blob)
    assert stored(folder) == [b"abc"], "the other one is gone all the same"


@pytest.mark.django_db(transaction=True)
def test_what_is_owned_stays(folder):
    job = make_job()
    blob = committed(b"abc")
    Artifact.objects.create(run=job.run, attempt=1, name="a", blob=blob, expires_at=timezone.now())
    with pytest.raises(ProtectedError):
        blobs.discard(blob)
    assert stored(folder) == [b"abc"]


def test_deleting_nothing_asks_for_nothing():
    files.delete_after_commit([])

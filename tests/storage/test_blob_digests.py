"""Is a large blob read by one thread only, few at a time, and never twice?"""

import threading
import time

import pytest

from ci.models import Blob
from ci.storage import blob_digests
from ci.storage.blob_errors import DigestBusy
from tests.storage.blob_files import committed

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def large(blobs, monkeypatch):
    """Every blob counts as one."""
    monkeypatch.setattr(blob_digests, "SMALL", 0)
    monkeypatch.setattr(blob_digests, "SECONDS", 0.1)


class Reading:
    """Somebody else is reading it, until told to stop; of the database it asks nothing."""

    def __init__(self, blob):
        self._begun, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(blob,))

    def _run(self, blob):
        with blob_digests._place(blob):
            self._begun.set()
            self._end.wait(60)

    def __enter__(self):
        self._thread.start()
        assert self._begun.wait(60)

    def __exit__(self, *error):
        self._end.set()
        self._thread.join(60)


def test_a_blob_that_is_being_read_is_not_read_by_another():
    blob = committed(b"abc")
    with Reading(blob), pytest.raises(DigestBusy):
        blob_digests.digest(blob)
    assert blob_digests.digest(blob).startswith("sha256:ba7816bf")


def test_few_are_read_at_once_and_who_waits_does_not_wait_for_long():
    first, second, third = committed(b"1"), committed(b"2"), committed(b"3")
    with Reading(first), Reading(second):
        began = time.monotonic()
        with pytest.raises(DigestBusy):
            blob_digests.digest(third)
        assert time.monotonic() - began < 10
    assert blob_digests.digest(third)


def test_small_ones_need_no_place(monkeypatch):
    first, second, small = committed(b"1"), committed(b"2"), committed(b"3")
    with Reading(first), Reading(second):
        monkeypatch.setattr(blob_digests, "SMALL", 1)
        assert blob_digests.digest(small)


def test_what_was_found_is_kept(monkeypatch):
    blob = committed(b"abc")
    found = blob_digests.digest(blob)
    assert Blob.objects.get().digest == found
    monkeypatch.setattr(blob_digests, "read", None)
    assert blob_digests.digest(blob) == found

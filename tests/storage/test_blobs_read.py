"""Are the bytes that come out the ones that went in, in any stretch of them, and is what was lost noticed?"""

import hashlib
import os

import pytest
from django.core.files.storage import default_storage

from ci.models import BlobPart
from ci.storage import blob_digests, blobs, files
from tests.storage.blob_files import committed, content, put

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(blobs):
    return blobs


def test_any_stretch_across_parts_reads_as_of_one_file(folder):
    blob = committed(b"abc", b"", b"d", b"efgh")
    for start in range(10):
        for end in range(10):
            assert content(blob, start=start, end=end) == b"abcdefgh"[start:end]
    assert content(blob, start=3) == b"defgh"


def test_only_the_parts_touched_are_opened(folder, monkeypatch):
    blob = committed(b"abc", b"def", b"ghi")
    opened = []
    read = files.pieces
    monkeypatch.setattr(files, "pieces", lambda name, **given: opened.append(name) or read(name, **given))
    assert content(blob, start=4, end=6) == b"ef"
    assert opened == [BlobPart.objects.get(position=1).file]


def test_pieces_are_small_and_the_database_is_not_asked_meanwhile(folder, django_assert_num_queries):
    data = os.urandom(files.PIECE * 2 + 17)
    blob = committed(data, data)
    pieces = blobs.read(blob)
    with django_assert_num_queries(0):
        found = list(pieces)
    assert max(map(len, found)) == files.PIECE
    assert b"".join(found) == data * 2


def test_the_digest_is_of_all_parts_in_order(folder):
    data = bytes(range(256)) * 5000
    blob = committed(data[:1000], data[1000:])
    assert blob_digests.digest(blob) == "sha256:" + hashlib.sha256(data).hexdigest()


def test_a_blob_that_is_not_committed_or_gone_cannot_be_read(folder):
    blob = blobs.create()
    put(blob, "a", b"bytes")
    with pytest.raises(blobs.BlobMissing):
        blobs.read(blob)
    blobs.discard(blob)
    with pytest.raises(blobs.BlobMissing):
        blob_digests.digest(blob)


def test_a_lost_file_is_noticed(folder):
    blob = committed(b"abc", b"def")
    default_storage.delete(BlobPart.objects.get(position=1).file)
    pieces = blobs.read(blob)
    assert next(pieces) == b"abc"
    with pytest.raises(blobs.BlobLost):
        next(pieces)


def test_a_file_that_became_shorter_is_noticed(folder):
    blob = committed(b"abc", b"def")
    os.truncate(default_storage.path(BlobPart.objects.get(position=0).file), 2)
    with pytest.raises(blobs.BlobLost, match="1 bytes too short"):
        content(blob)

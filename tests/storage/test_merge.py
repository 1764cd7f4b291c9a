"""Is a log whole while it moves from rows to a file, whoever is killed and whoever reads?"""

import subprocess
import threading

import pytest
from django.core.files.storage import default_storage
from django.db import connection, transaction

from ci.models import Log, LogChunk
from ci.storage import log_blobs, logs
from tests.storage.rows import LIMITS, TIME, add, make_job, texts


def fill(job_id, count=2_500, step=100):
    for first in range(0, count, step):
        add(job_id, first, *(f"line {number}\rof many" for number in range(first, min(count, first + step))))
    return [f"line {number}\rof many" for number in range(count)]


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_merged_log_reads_as_before(job_id, blobs):
    expected = fill(job_id)
    before = b"".join(logs.raw(job_id))
    logs.seal(job_id)
    logs.merge(job_id)
    assert not LogChunk.objects.exists()
    assert len(files(blobs)) == 1
    assert texts(job_id) == expected
    assert logs.lines(job_id, 1_234, 1) == [logs.LogLine(1_234, TIME, "line 1234\rof many")]
    assert texts(job_id, 2_498, 50) == expected[2_498:]
    assert texts(job_id, 999, 2) == expected[999:1001]
    assert b"".join(logs.raw(job_id)) == before
    assert logs.length(job_id) == 2_500


def test_raw_gives_texts_and_on_demand_their_times(job_id, blobs):
    add(job_id, 0, "a\tb", "c")
    assert b"".join(logs.raw(job_id)) == b"a\tb\nc\n"
    assert b"".join(logs.raw(job_id, timestamps=True)) == f"{TIME} a\tb\n{TIME} c\n".encode()


def test_an_open_log_is_not_merged(job_id, blobs):
    add(job_id, 0, "one")
    logs.merge(job_id)
    assert LogChunk.objects.count() == 1
    assert not files(blobs)


def test_an_empty_log_makes_no_file_and_an_unknown_job_is_no_error(job_id, blobs):
    logs.seal(job_id)
    logs.merge(job_id)
    logs.merge(10**9)
    assert not files(blobs)


def test_merging_twice_keeps_the_first_file(job_id, blobs):
    fill(job_id, 10)
    logs.seal(job_id)
    logs.merge(job_id)
    (first,) = files(blobs)
    logs.merge(job_id)
    assert files(blobs) == [first]


def test_the_tail_is_read_without_reading_the_rest(job_id, blobs, monkeypatch):
    expected = fill(job_id, 5_000, 500)
    logs.seal(job_id)
    logs.merge(job_id)
    decompressed = []
    real = log_blobs.decompress
    monkeypatch.setattr(log_blobs, "decompress", lambda data: decompressed.append(len(data)) or real(data))
    assert texts(job_id, 4_900, 100) == expected[4_900:]
    assert len(decompressed) == 1


def test_a_kill_after_the_name_was_recorded_loses_nothing(job_id, blobs, monkeypatch):
    """The first merge dies while its file is half written; the next one removes that file."""
    expected = fill(job_id, 300)
    logs.seal(job_id)

    def die(name, source):
        default_storage.save(name, source)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(logs.files, "save", die)
        logs.merge(job_id)
    (half,) = files(blobs)
    half.write_bytes(b"half")
    assert texts(job_id) == expected
    logs.merge(job_id)
    assert texts(job_id) == expected
    assert not half.exists()
    assert len(files(blobs)) == 1


def test_a_kill_before_the_rows_were_deleted_loses_nothing(job_id, blobs, monkeypatch):
    expected = fill(job_id, 300)
    logs.seal(job_id)
    real = transaction.atomic

    def die():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(logs.transaction, "atomic", die)
        logs.merge(job_id)
    assert transaction.atomic is real
    assert LogChunk.objects.count() == 3
    assert texts(job_id) == expected
    logs.merge(job_id)
    assert texts(job_id) == expected
    assert len(files(blobs)) == 1


def test_a_full_disk_leaves_the_rows(job_id, blobs, monkeypatch):
    expected = fill(job_id, 300)
    logs.seal(job_id)

    def full(name, source):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(logs.files, "save", full)
        logs.merge(job_id)
    assert texts(job_id) == expected
    logs.merge(job_id)
    assert texts(job_id) == expected


def test_a_missing_file_is_said_by_name(job_id, blobs):
    fill(job_id, 10)
    logs.seal(job_id)
    logs.merge(job_id)
    files(blobs)[0].unlink()
    with pytest.raises(logs.LogLost, match=f"log of job {job_id} is no longer in the storage"):
        logs.lines(job_id, 0, 1)


@pytest.mark.parametrize("content", [b"", b"x", b"no index here, only text", b"\xff" * 4 + b"FLOG"])
def test_a_damaged_file_is_said_by_name(job_id, blobs, content):
    fill(job_id, 10)
    logs.seal(job_id)
    logs.merge(job_id)
    files(blobs)[0].write_bytes(content)
    with pytest.raises(logs.LogLost, match="damaged"):
        logs.lines(job_id, 0, 1)


def test_a_changed_byte_is_noticed(job_id, blobs):
    fill(job_id, 10)
    logs.seal(job_id)
    logs.merge(job_id)
    path = files(blobs)[0]
    content = bytearray(path.read_bytes())
    content[0] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(logs.LogLost, match="damaged"):
        logs.lines(job_id, 0, 1)


def test_the_file_is_plain_zstd(job_id, blobs, tmp_path):
    """An operator reads it with the tool everybody has."""
    fill(job_id, 1_500)
    logs.seal(job_id)
    logs.merge(job_id)
    try:
        plain = subprocess.run(["zstd", "-dc", files(blobs)[0]], capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("zstd is not installed")
    assert plain.count(b"\n") == 1_500


def test_deleting_removes_rows_and_file_but_not_when_rolled_back(job_id, blobs, django_capture_on_commit_callbacks):
    fill(job_id, 10)
    logs.seal(job_id)
    logs.merge(job_id)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        logs.delete(job_id)
        raise ZeroDivisionError
    assert len(texts(job_id)) == 10
    with django_capture_on_commit_callbacks(execute=True):
        logs.delete(job_id)
    assert not files(blobs)
    assert not Log.objects.exists()
    logs.delete(job_id)


@pytest.mark.django_db(transaction=True)
def test_readers_and_two_mergers_at_once_see_every_line(blobs):
    job_id = make_job().pk
    expected = fill(job_id, 1_500, 10)
    logs.seal(job_id)
    problems = []
    merged = threading.Event()

    def merge():
        try:
            logs.merge(job_id)
        except Exception as error:
            problems.append(error)
        finally:
            connection.close()

    def read():
        try:
            while True:
                last = merged.is_set()
                if texts(job_id) != expected:
                    problems.append("a reader missed lines")
                if last:
                    return
        except Exception as error:
            problems.append(error)
        finally:
            connection.close()

    readers = [threading.Thread(target=read) for _ in range(2)]
    mergers = [threading.Thread(target=merge) for _ in range(3)]
    for thread in readers + mergers:
        thread.start()
    for thread in mergers:
        thread.join()
    merged.set()
    for thread in readers:
        thread.join()
    logs.merge(job_id)
    assert not problems
    assert not LogChunk.objects.exists()
    assert len(files(blobs)) == 1
    assert logs.append(job_id=job_id, offset=0, lines=[(TIME, "again")], **LIMITS).wrote == 0

"""Are log files without a job removed, and no others?"""

import os
import time

from ci.models import Job, Log
from ci.storage import logs
from ci.storage.log_orphans import remove_orphans
from tests.storage.rows import add


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def age(path):
    earlier = time.time() - 7200
    os.utime(path, (earlier, earlier))


def merged(job_id, blobs):
    add(job_id, 0, "one")
    logs.seal(job_id)
    logs.merge(job_id)
    (path,) = files(blobs)
    age(path)
    return path


def test_the_file_of_a_deleted_job_goes(job_id, blobs):
    merged(job_id, blobs)
    Job.objects.all().delete()
    assert remove_orphans() == 1
    assert files(blobs) == []


def test_the_file_of_a_log_stays(job_id, blobs):
    path = merged(job_id, blobs)
    assert remove_orphans() == 0
    assert files(blobs) == [path]


def test_the_file_of_a_merge_that_goes_on_stays(job_id, blobs):
    path = merged(job_id, blobs)
    Log.objects.update(blob=str(path.relative_to(blobs)) + ".part")
    assert remove_orphans() == 0


def test_a_young_file_stays(job_id, blobs):
    path = merged(job_id, blobs)
    Job.objects.all().delete()
    os.utime(path)
    assert remove_orphans() == 0


def test_other_files_are_not_touched(job_id, blobs):
    merged(job_id, blobs)
    for name in ("artifacts/0/1.zip", "other"):
        path = blobs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        age(path)
    Job.objects.all().delete()
    assert remove_orphans() == 1
    assert len(files(blobs)) == 2


def test_at_most_so_many_go_at_once(job_id, blobs):
    path = merged(job_id, blobs)
    for number in range(5):
        copy = path.with_name(f"999-{number}.zst")
        copy.write_bytes(b"x")
        age(copy)
    assert remove_orphans(most=3) == 3
    assert remove_orphans() == 2
    assert files(blobs) == [path]


def test_without_any_log_there_is_nothing_to_do(db, blobs):
    assert remove_orphans() == 0

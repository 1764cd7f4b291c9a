"""Which guards have the bytes of artifacts and caches, and who takes them away?"""

from __future__ import annotations

from tests.mutation.guard import RACES, Guard

BLOBS = "ci/storage/blobs.py"
ORPHANS = "ci/storage/blob_orphans.py"
DIGESTS = "ci/storage/blob_digests.py"
SWEEPS = "ci/lifecycle/artifact_sweeps.py"
RACING = RACES + "test_blobs.py"
ARTIFACTS = RACES + "test_artifacts.py"
PUTTING = "tests/storage/test_blobs_put.py"
COMMITTING = "tests/storage/test_blobs_commit.py"
SWEEPING = "tests/storage/test_blob_orphans.py"
READING = "tests/storage/test_blob_digests.py"

OF_BLOBS = (
    Guard(
        "the lock of a blob",
        BLOBS,
        "Blob.objects.select_for_update(no_key=True).filter(pk=blob.pk).first()",
        "Blob.objects.filter(pk=blob.pk).first()",
        (RACING + "::test_puts_of_two_blocks_both_count",),
    ),
    Guard(
        "a block is put under the lock of its blob",
        BLOBS,
        "    locked = _lock(blob)\n    if known := ",
        "    locked = Blob.objects.get(pk=blob.pk)\n    if known := ",
        (RACING + "::test_a_commit_waits_for_the_put_that_it_names",),
    ),
    Guard(
        "a block that a commit overtakes changes nothing",
        BLOBS,
        "    if known := _repeated(blob, block_id, size):\n        files.delete_after",
        "    if known := None:\n        files.delete_after",
        (RACING + "::test_a_put_of_the_same_block_that_a_commit_overtakes_changes_nothing",),
    ),
    Guard(
        "a list is committed under the lock of its blob",
        BLOBS,
        "        locked = _lock(blob)\n        return _join",
        "        locked = Blob.objects.get(pk=blob.pk)\n        return _join",
        (RACING + "::test_of_two_commits_of_different_lists_one_is_refused",),
    ),
    Guard(
        "all is committed under the lock of its blob",
        BLOBS,
        "        locked = _lock(blob)\n        # Sorted",
        "        locked = Blob.objects.get(pk=blob.pk)\n        # Sorted",
        (RACING + "::test_two_commits_of_all_give_the_same_answer",),
    ),
    Guard(
        "a blob is committed once",
        BLOBS,
        "    if locked.committed_at is not None:\n        if block_ids",
        "    if False:\n        if block_ids",
        (COMMITTING + "::test_a_repeat_gives_the_same_answer_and_another_list_is_refused",),
    ),
    Guard(
        "what is deleted is locked before its files are listed",
        BLOBS,
        "Blob.objects.select_for_update().filter(pk__in=",
        "Blob.objects.filter(pk__in=",
        (RACING + "::test_a_discard_during_a_put_waits_and_takes_its_bytes_too",),
    ),
    Guard(
        "a put that took too long leaves nothing",
        BLOBS,
        "            if timezone.now() - began > PUT_TIME:\n                raise PutTooSlow\n",
        "",
        (PUTTING + "::test_a_put_that_took_so_long_that_a_sweep_may_have_its_file_is_refused",),
    ),
    Guard(
        "a put whose end nobody knows keeps its file",
        BLOBS,
        "    except BlobError:\n        files.delete([name])\n",
        "    except BaseException:\n        files.delete([name])\n",
        (PUTTING + "::test_a_put_keeps_its_file_when_nobody_knows_whether_the_row_is_there",),
    ),
    Guard(
        "a rollback keeps the bytes",
        "ci/storage/files.py",
        "        transaction.on_commit(lambda: delete(doomed))\n",
        "        delete(doomed)\n",
        ("tests/storage/test_blobs_discard.py::test_a_rollback_keeps_the_bytes",),
    ),
    Guard(
        "what has found an owner is not swept",
        ORPHANS,
        "        except ProtectedError:\n            continue  # it has found an owner meanwhile\n",
        "        except NotImplementedError:\n            continue\n",
        (SWEEPING + "::test_an_owner_that_comes_while_the_sweep_looks_saves_the_blob",),
    ),
    Guard(
        "the lock of a blob whose parts are swept",
        ORPHANS,
        "Blob.objects.select_for_update(no_key=True).filter(pk=blob.pk, committed_at=None)",
        "Blob.objects.filter(pk=blob.pk, committed_at=None)",
        (RACING + "::test_a_commit_waits_for_the_sweep_of_its_parts_and_misses_them",),
    ),
    Guard(
        "what was committed meanwhile is not swept",
        ORPHANS,
        "filter(pk=blob.pk, committed_at=None).first()",
        "filter(pk=blob.pk).first()",
        (SWEEPING + "::test_a_commit_while_the_sweep_looks_keeps_its_blocks",),
    ),
    Guard(
        "what goes on meanwhile is not swept",
        ORPHANS,
        "    if newest is None or newest >= before:\n        return False\n",
        "",
        (SWEEPING + "::test_a_block_that_comes_while_the_sweep_looks_keeps_the_others",),
    ),
    Guard(
        "a file that a row may yet name is not swept",
        ORPHANS,
        "        if default_storage.get_modified_time(name) > timezone.now() - UNNAMED_FOR:\n            return 0\n",
        "        default_storage.get_modified_time(name)\n",
        (SWEEPING + "::test_files_without_a_row_go_when_no_put_can_still_name_them",),
    ),
    Guard(
        "the lock of a blob whose file is given up",
        SWEEPS,
        "Blob.objects.select_for_update(no_key=True).filter(pk=file.blob_id).filter(_partial())",
        "Blob.objects.filter(pk=file.blob_id).filter(_partial())",
        (ARTIFACTS + "::test_whose_file_is_given_up_does_not_hear_that_it_is_complete",),
    ),
    Guard(
        "an upload is given up under the lock of its run",
        SWEEPS,
        "    lock_run(artifact.run_id)\n",
        "",
        (ARTIFACTS + "::test_what_is_given_up_is_not_finished_any_more",),
    ),
    Guard(
        "a file is given up under the lock of its run",
        SWEEPS,
        "    lock_run(run_id)\n    file = ",
        "    file = ",
        (ARTIFACTS + "::test_who_begins_a_file_anew_waits_for_who_gives_it_up",),
    ),
    Guard(
        "what expired is looked at again under the lock of its run",
        SWEEPS,
        "    lock_run(run_id)\n    artifact = ",
        "    artifact = ",
        (ARTIFACTS + "::test_an_artifact_that_is_deleted_while_it_expires_goes_once",),
    ),
    Guard(
        "an artifact is deleted under the lock of its run",
        "ci/lifecycle/artifacts.py",
        "        lock_run(found.run_id)\n",
        "        pass\n",
        (ARTIFACTS + "::test_what_two_people_delete_at_once_is_deleted_once",),
    ),
    Guard(
        "one reads a large blob for its digest",
        DIGESTS,
        "        if blob.pk in _being_read:\n            raise DigestBusy\n",
        "",
        (READING + "::test_a_blob_that_is_being_read_is_not_read_by_another",),
    ),
    Guard(
        "few large blobs are read for their digests at once",
        DIGESTS,
        "        if not _places.acquire(timeout=SECONDS):\n            raise DigestBusy\n        try:\n"
        "            yield\n        finally:\n            _places.release()\n",
        "        yield\n",
        (READING + "::test_few_are_read_at_once_and_who_waits_does_not_wait_for_long",),
    ),
)

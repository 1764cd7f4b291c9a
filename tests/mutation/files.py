"""Which guards have logs and measures, and what processes share beside the database?"""

from __future__ import annotations

from tests.mutation.guard import Guard

LOGS = "ci/storage/logs.py"
MEASURES = "ci/lifecycle/measures.py"
LIVE = "forge/git/live.py"
AT_ONCE = "tests/storage/test_seal_at_once.py"
METRICS = "tests/api/test_metrics.py"
KEY = "tests/up/test_keep_the_secret_key.py::test_who_comes_while_it_is_made_waits_and_gets_it"
ATTEMPT = "ci/scaling/launchers/local_attempt.py"
LOCAL = "tests/scaling/launchers/test_local.py"
CRASHES = "tests/forge/git/test_settle_after_a_crash.py"

OF_FILES = (
    Guard(
        "a log is begun once",
        LOGS,
        "bulk_create([Log(job_id=job_id)], ignore_conflicts=True)",
        "bulk_create([] if Log.objects.filter(pk=job_id).exists() else [Log(job_id=job_id)])",
        (AT_ONCE + "::test_the_first_lines_of_two_stand_one_after_the_other",),
    ),
    Guard(
        "only whose file is recorded deletes the rows of a log",
        LOGS,
        "        if mine:\n",
        "        if True:\n",
        (AT_ONCE + "::test_a_merge_that_is_overtaken_by_one_that_died_keeps_the_rows",),
    ),
    Guard(
        "whose file is not recorded deletes it",
        LOGS,
        "    if not mine:\n",
        "    if False:\n",
        (AT_ONCE + "::test_a_merge_that_is_overtaken_by_one_that_died_keeps_the_rows",),
    ),
    Guard(
        "the rows of a log stay where the file would have fewer lines",
        LOGS,
        "        if written != log.lines:\n",
        "        if False:\n",
        (AT_ONCE + "::test_a_log_of_which_rows_are_missing_keeps_those_that_there_are",),
    ),
    Guard(
        "a file that may be half written is no log",
        LOGS,
        '    return blob != "" and not blob.endswith(_UNFINISHED)\n',
        '    return blob != ""\n',
        ("tests/storage/test_merge.py::test_a_kill_after_the_name_was_recorded_loses_nothing",),
    ),
    Guard(
        "what is measured is added to what was",
        MEASURES,
        "SET count = known.count + excluded.count, milliseconds = known.milliseconds + excluded.milliseconds\n",
        "SET count = excluded.count, milliseconds = excluded.milliseconds\n",
        (METRICS + "::test_what_is_added_up_later_comes_to_what_was_there",),
    ),
    Guard(
        "what is measured is added up once",
        MEASURES,
        "WITH taken AS (DELETE FROM ci_jobmeasure WHERE runner_set_id = %(set)s RETURNING *)",
        "WITH taken AS (SELECT * FROM ci_jobmeasure WHERE runner_set_id = %(set)s)",
        (METRICS + "::test_what_is_added_up_later_comes_to_what_was_there",),
    ),
    Guard(
        "a push under way is seen to live",
        LIVE,
        "            fcntl.flock(self.descriptor, fcntl.LOCK_EX)\n",
        "            pass\n",
        (CRASHES + "::test_what_a_living_process_holds_is_left_alone",),
    ),
    Guard(
        "who holds its lock is a living push",
        LIVE,
        "                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "                pass\n",
        (CRASHES + "::test_what_a_living_process_holds_is_left_alone",),
    ),
    Guard(
        "the lock of a data folder",
        "ci/management/data_folder.py",
        "            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            pass\n",
        ("tests/up/test_refuse_to_start.py::test_a_data_folder_is_held_by_one",),
    ),
    Guard(
        "the lock of a runner's work folder",
        "ci/runner/workspace.py",
        "        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "        pass\n",
        ("tests/runner/test_register_runner.py::test_two_runners_cannot_share_a_work_folder",),
    ),
    Guard(
        "the lock of a local process",
        ATTEMPT,
        "            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            pass\n",
        (LOCAL + "::test_an_attempt_is_in_one_pair_of_hands",),
    ),
    Guard(
        "the lock of a local process is that of its folder",
        ATTEMPT,
        "            return os.path.samestat(os.fstat(descriptor), os.stat(self._lock))\n",
        "            return True\n",
        (LOCAL + "::test_the_lock_of_a_folder_that_was_removed_is_that_of_nothing",),
    ),
    Guard(
        "the lock of who makes the secret key",
        "forge/secret_key.py",
        "        fcntl.flock(file, fcntl.LOCK_EX)\n",
        "        pass\n",
        (KEY,),
    ),
    Guard(
        "a secret key that was made meanwhile is the one",
        "forge/secret_key.py",
        "        key = file.read().strip()\n",
        '        key = ""\n',
        (KEY,),
    ),
    Guard(
        "the lock of who migrates",
        "ci/management/installation.py",
        '                    cursor.execute("SELECT pg_advisory_lock(%s)", [_MIGRATION_LOCK])\n',
        "                    pass\n",
        ("tests/up/test_migrate_once.py",),
    ),
)

"""Which guards keep a runner set right?"""

from __future__ import annotations

from tests.mutation.guard import RACES, Guard, T

SCALING = "tests/scaling/"
FIGHTS = SCALING + "test_races.py"
STOPS = SCALING + "test_stop.py"
LATE = RACES + "test_late_polls.py"
LAUNCHES = SCALING + "test_launch.py"

OF_RUNNER_SETS = (
    Guard(
        "set: the lock under which it is scaled",
        T + "guard.py",
        "return RunnerSet.objects.select_for_update(no_key=True).get(pk=set_id)",
        "return RunnerSet.objects.get(pk=set_id)",
        (FIGHTS + "::test_two_looks_at_once_make_each_runner_once",),
    ),
    Guard(
        "set: claims that share a limit go one after the other",
        T + "claim.py",
        '            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [SHARED_LIMIT, runner_set.pk])\n',
        "            pass\n",
        (SCALING + "test_claim_limits.py::test_claims_at_once_keep_the_limit_together",),
    ),
    Guard(
        "set: scaling waits for no runner",
        T + "guard.py",
        "select_for_update(no_key=True, skip_locked=True)",
        "select_for_update(no_key=True, nowait=True)",
        (FIGHTS + "::test_scaling_does_not_wait_for_a_runner_that_is_being_changed",),
    ),
    Guard(
        "set: a runner is changed only as it was seen",
        T + "guard.py",
        "return free.filter(pk=seen.pk, version=seen.version).first()",
        "return free.filter(pk=seen.pk).first()",
        (FIGHTS + "::test_a_claim_between_look_and_retirement_keeps_its_runner",),
    ),
    Guard(
        "set: missing runners are counted by the one look",
        T + "scale_set.py",
        "    missing = min(desired - useful, runner_set.maximum - len(sight.runners))\n",
        "    missing = desired - len(demand.look(runner_set).useful)\n",
        (SCALING + "test_scale_set.py::test_a_job_that_ends_during_the_look_is_not_refilled",),
    ),
    Guard(
        "set: a process that may exist takes up room",
        T + "scale_set.py",
        "runner_set.maximum - len(sight.runners))",
        "runner_set.maximum - len(sight.useful))",
        (SCALING + "test_scale_set.py::test_a_process_that_may_still_exist_takes_up_room",),
    ),
    Guard(
        "set: a late poll of a process that is gone",
        T + "claim.py",
        "    if runner.deleting_at is not None or runner.next_attempt_at is not None:\n",
        "    if False:\n",
        (SCALING + "test_launch.py::test_a_late_poll_of_a_process_that_is_gone_gets_no_job",),
    ),
    Guard(
        "set: the end of an earlier process",
        T + "process_end.py",
        "        if job is not None and _is_open(runner_id, attempt):\n",
        "        if job is not None:\n",
        (SCALING + "test_process_end.py::test_a_late_end_of_an_earlier_process_does_not_concern_the_next",),
    ),
    Guard(
        "set: an end is noted once",
        T + "process_end.py",
        "    if current is None or current.number != attempt:\n        return False\n    if Job",
        "    if current is None:\n        current = LaunchAttempt.objects.filter(runner=runner).get()\n    if Job",
        (SCALING + "test_process_end.py::test_an_end_is_noted_once",),
    ),
    Guard(
        "set: what has an end has not vanished",
        T + "process_end.py",
        "    elif why == VANISHED:\n",
        "    elif exit_code is None:\n",
        (SCALING + "test_process_end.py::test_a_failure_without_an_exit_code_is_a_fresh_attempt_after_a_pause",),
    ),
    Guard(
        "set: no word of the process reaches who reads its job",
        T + "process_end.py",
        "    told = end_in_words(exit_code, why)\n",
        "    told = why\n",
        (SCALING + "test_process_end.py::test_what_the_process_wrote_is_for_who_administers_the_set",),
    ),
    Guard(
        "set: a late force",
        T + "process_end.py",
        "    if current is None or current.number != attempt or runner.deleting_at is None:\n",
        "    if current is None:\n",
        (STOPS + "::test_a_stop_that_comes_late_ends_no_later_process_of_its_runner",),
    ),
    Guard(
        "set: its time to go is given once",
        T + "leaving.py",
        "return rest if runner.deleting_at is not None else rest | told_to_go(now)",
        "return rest | told_to_go(now)",
        (STOPS + "::test_one_that_was_told_to_go_is_not_told_again",),
    ),
    Guard(
        "set: a process is looked for before it is called lost",
        "ci/scaling/looking.py",
        "    process = launcher.poll(attempt.handle)\n",
        "    process = None\n",
        (SCALING + "test_process_end.py::test_one_that_is_not_in_the_list_yet_is_not_lost",),
    ),
    Guard(
        "set: a launch without an answer is looked for",
        "ci/scaling/starting.py",
        "        found = [process for process in launcher.list(begun.set_id) if process.identity == identity]\n",
        "        found: list[Process] = []\n",
        (SCALING + "test_launch.py::test_a_launch_without_an_answer_is_looked_for_before_another_one",),
    ),
    Guard(
        "set: an orphan by its handle",
        "ci/scaling/looking.py",
        '            elif process.state != "exited":\n                orphans.meet(process, launcher)\n',
        "            elif False:\n                pass\n",
        (SCALING + "test_kill_points.py::test_a_process_of_a_set_that_is_gone_is_ended",),
    ),
    Guard(
        "set: the credential of a poll, when it takes a job",
        T + "claim.py",
        "    check_runner_token(runner, token_hash)\n",
        "",
        (LATE + "::test_it_gets_no_job",),
    ),
    Guard(
        "set: the credential of a poll, when it says that its process is up",
        T + "launching.py",
        "    check_runner_token(runner, token_hash)\n",
        "",
        (LATE + "::test_it_does_not_make_the_next_process_one_that_has_come_up",),
    ),
    Guard(
        "set: the credential of a poll, when it is a sign of life",
        "ci/lifecycle/fetch.py",
        "        late = late.filter(token_hash=token_hash)\n",
        "        pass\n",
        (LATE + "::test_it_is_no_sign_of_life_of_the_next_process",),
    ),
    Guard(
        "set: a launch of a set in trouble",
        T + "launching.py",
        "    if trouble.holds_back(runner_set.pk, now):\n        return None\n",
        "",
        (LAUNCHES + "::test_launches_that_were_decided_on_before_the_trouble_are_held_back_too",),
    ),
    Guard(
        "set: launches of a set in trouble go one after the other",
        T + "trouble.py",
        "    runner_set = lock_set(set_id)\n",
        "    runner_set = RunnerSet.objects.get(pk=set_id)\n",
        (FIGHTS + "::test_of_two_launches_of_a_set_in_trouble_one_is_begun",),
    ),
    Guard(
        "set: a silent runner that has just got a job",
        T + "dying.py",
        "    if held or (free and Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists()):\n",
        "    if held:\n",
        (SCALING + "test_silence.py::test_one_that_gets_a_job_just_then_keeps_it",),
    ),
    Guard(
        "set: one that was told to go is no runner to count on",
        "ci/lifecycle/demand.py",
        "return not self.is_done and not self.going and (self.busy or not self.paused)",
        "return not self.is_done and (self.busy or not self.paused)",
        (STOPS + "::test_one_that_was_told_to_go_is_no_runner_that_a_job_can_count_on",),
    ),
    Guard(
        "set: deletion ends intake",
        T + "claim.py",
        "    if runner_set.phase == RunnerSet.Phase.DELETING:\n        return None\n",
        "",
        (SCALING + "test_delete_set.py::test_it_takes_no_job_any_more",),
    ),
    Guard(
        "set: only what is of its revision parks it",
        T + "scale_set.py",
        "        spec_revision=runner_set.spec_revision,\n    )\n    first",
        "    )\n    first",
        (SCALING + "test_park.py::test_what_a_runner_of_an_older_revision_says_is_not_held_against_the_set",),
    ),
    Guard(
        "set: a lost runner has failed",
        T + "deadlines.py",
        '    if job.runner is not None:\n        lose_runner(job.runner, f"{why}.")\n',
        "",
        (STOPS + "::test_a_lost_one_has_no_grace", SCALING + "test_process_end.py"),
    ),
)

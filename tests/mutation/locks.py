"""Which locks and conditional writes are there, beside those of the first table?"""

from __future__ import annotations

from tests.mutation.guard import LIFE, RACES, Guard, T

LOCKS = RACES + "test_locks.py"
LACKS = RACES + "test_upstream_lacks.py"
VERSIONS = RACES + "test_versions.py"
OLD_VERSION = VERSIONS + "::test_an_old_version_is_a_conflict_and_changes_nothing"

ROW_LOCKS = (
    Guard(
        "the lock of a run's jobs",
        T + "guard.py",
        "for job in moving.select_for_update(no_key=True)}",
        "for job in moving}",
        (RACES + "test_claims.py::test_a_claim_during_a_cancel_finds_nothing_and_does_not_wait",),
    ),
    Guard(
        "the lock of a job",
        T + "guard.py",
        "    job = Job.objects.select_for_update(no_key=True).filter(pk=job_id)",
        "    job = Job.objects.filter(pk=job_id)",
        (LOCKS + "::test_a_claim_does_not_get_past_the_cancel_of_its_job",),
    ),
    Guard(
        "the lock of a runner",
        T + "guard.py",
        "Runner.objects.select_for_update(no_key=True).get(pk=runner_id)",
        "Runner.objects.get(pk=runner_id)",
        (LACKS + "::test_a_scale_down_that_meets_a_claim_lets_one_of_them_win",),
    ),
    Guard(
        "the claim asks again what it has locked",
        "ci/lifecycle/queue_query.py",
        "        WHERE job.state = 'queued'\n",
        "",
        (LOCKS + "::test_a_job_that_moves_while_a_claim_looks_at_the_queue_is_not_taken",),
    ),
    Guard(
        "the lock of a repeated poll",
        T + "claim.py",
        "ORDER BY id LIMIT 1 FOR NO KEY UPDATE\n",
        "ORDER BY id LIMIT 1\n",
        (LOCKS + "::test_a_repeated_poll_does_not_replace_the_token_of_who_acknowledged",),
    ),
    Guard(
        "the lock of a job whose log grows",
        T + "append_log.py",
        'FROM "ci_job" WHERE id = %s FOR NO KEY UPDATE',
        'FROM "ci_job" WHERE id = %s',
        (LOCKS + "::test_a_line_of_a_log_is_written_before_its_job_is_taken_back",),
    ),
    Guard(
        "the lock of a runner whose job ends",
        T + "moves.py",
        '''another one is idle again."""
    locked = Runner.objects.select_for_update(no_key=True).filter(''',
        '''another one is idle again."""
    locked = Runner.objects.filter(''',
        (LOCKS + "::test_the_end_of_a_process_is_not_overwritten_by_the_end_of_its_job",),
    ),
    Guard(
        "the lock of a runner whose job is lost",
        T + "moves.py",
        '''another one may come back."""
    locked = Runner.objects.select_for_update(no_key=True).filter(''',
        '''another one may come back."""
    locked = Runner.objects.filter(''',
        (LOCKS + "::test_the_end_of_a_process_is_not_overwritten_by_the_loss_of_its_job",),
    ),
    Guard(
        "the lock of a job that gives up its group",
        T + "concurrency.py",
        "    job = Job.objects.select_for_update(no_key=True).get(pk=entrant.pk)\n    if not job.is_ended",
        "    job = Job.objects.get(pk=entrant.pk)\n    if not job.is_ended",
        (LOCKS + "::test_a_claim_does_not_get_past_a_run_that_takes_its_jobs_group",),
    ),
    Guard(
        "the locks of a group's runs",
        T + "concurrency.py",
        "        lock_run(run_id)\n",
        "        pass\n",
        (LOCKS + "::test_who_leaves_a_group_while_it_is_settled_waits",),
    ),
    Guard(
        "the group before the run: rerun",
        T + "rerun.py",
        "        lock_group(group_id)\n",
        "        pass\n",
        (LOCKS + "::test_a_rerun_holds_its_group_before_its_run",),
    ),
    Guard(
        "the group before the run: approve_run",
        T + "approve_run.py",
        "        lock_group(group_id)\n",
        "        pass\n",
        (LOCKS + "::test_an_approval_holds_its_group_before_its_run",),
    ),
    Guard(
        "the lock of a schedule",
        "ci/lifecycle/schedules.py",
        'Schedule.objects.select_for_update(no_key=True, of=("self",))\n        .select_related',
        "Schedule.objects.select_related",
        (LOCKS + "::test_a_due_time_is_met_by_one_of_two",),
    ),
    Guard(
        "the lock of a workflow that is disabled",
        "ci/lifecycle/workflow_switch.py",
        'Workflow.objects.select_for_update(of=("self",), no_key=True).select_related',
        "Workflow.objects.select_related",
        (LOCKS + "::test_of_two_who_disable_a_workflow_one_is_told",),
    ),
    Guard(
        "the lock of the secrets that are encrypted anew",
        "ci/lifecycle/settings_values.py",
        "Secret.objects.select_for_update()",
        "Secret.objects.all()",
        (LOCKS + "::test_a_secret_that_is_set_while_all_are_encrypted_anew_keeps_its_value",),
    ),
    Guard(
        "the lock of who makes the first signing key",
        "ci/lifecycle/signing_keys.py",
        "        _lock()\n        return",
        "        return",
        (LOCKS + "::test_two_who_need_the_first_signing_key_make_one",),
    ),
    Guard(
        "the lock of the watch's leader",
        "ci/lifecycle/leading.py",
        "            if row is not None and row[0]:\n",
        "            if row is not None:\n",
        (LIFE + "test_watch.py::test_a_standby_takes_over_when_the_leader_is_gone",),
    ),
)

VERSION_CONDITIONS = (
    *(
        Guard(f"the version: {verb}", T + file, old, "", (f"{OLD_VERSION}[{verb}]",))
        for verb, file, old in (
            ("requeue_job", "deadlines.py", "    check_version(job, version)\n"),
            ("rerun", "rerun.py", "    check_version(run, version)\n"),
            ("approve_run", "approve_run.py", "    check_version(run, version)\n"),
            ("cancel_run", "cancel.py", "    check_version(run, version)\n"),
            ("cancel_job", "cancel.py", "    check_version(job, version)\n"),
            ("retire_runner", "retire_runner.py", "    check_version(runner, version)\n"),
        )
    ),
    Guard(
        "the version: pause_runner",
        "ci/lifecycle/registration.py",
        "    check_version(runner, version)\n    if runner.paused",
        "    if runner.paused",
        (OLD_VERSION + "[pause_runner]",),
    ),
    Guard(
        "the version: remove_runner, of one with a job",
        "ci/lifecycle/registration.py",
        "            _check_unchanged(runner_id, version)\n",
        "",
        (OLD_VERSION + "[remove_runner, busy]",),
    ),
    Guard(
        "the version: remove_runner, at its deletion",
        "ci/lifecycle/registration.py",
        "    check_version(runner, version)\n    # Under",
        "    # Under",
        (OLD_VERSION + "[remove_runner, idle]",),
    ),
    Guard(
        "the version of a runner set at its write",
        "ci/lifecycle/runner_sets.py",
        "RunnerSet.objects.filter(pk=current.pk, version=current.version)",
        "RunnerSet.objects.filter(pk=current.pk)",
        (VERSIONS + "::test_a_form_of_a_runner_set_that_is_overtaken_between_read_and_write_changes_nothing",),
    ),
    Guard(
        "the version of a runner set's form",
        "ci/lifecycle/runner_sets.py",
        "        changes = _changes(current, fields)\n        if version is not None and current.version != version:\n",
        "        changes = _changes(current, fields)\n        if False:\n",
        (VERSIONS + "::test_a_form_of_a_runner_set_on_an_old_version_changes_nothing",),
    ),
    Guard(
        "the version of a runner set that is deleted",
        T + "set_life.py",
        "    check_version(runner_set, version)\n    if runner_set.phase == RunnerSet.Phase.DELETING:\n",
        "    if runner_set.phase == RunnerSet.Phase.DELETING:\n",
        (VERSIONS + "::test_a_form_of_a_runner_set_on_an_old_version_changes_nothing",),
    ),
    Guard(
        "the version is bumped by every write",
        T + "moves.py",
        'update(version=F("version") + 1, **fields)',
        "update(**fields)",
        (LIFE + "test_retire_runner.py::test_an_idle_one_has_ended_with_the_reason_and_gets_no_job",),
    ),
    Guard(
        "the version is bumped by a claim",
        "ci/lifecycle/queue_query.py",
        "        deadline_at = %(deadline)s, version = version + 1\n",
        "    deadline_at = %(deadline)s\n",
        (LACKS + "::test_an_admin_who_cancels_the_row_he_saw_is_told_of_a_claim_in_between",),
    ),
    Guard(
        "a registration token is revoked once",
        "ci/lifecycle/registration.py",
        "filter(pk=token_id, revoked_at=None)",
        "filter(pk=token_id)",
        (RACES + "test_late_calls.py::test_a_registration_token_is_revoked_once",),
    ),
)

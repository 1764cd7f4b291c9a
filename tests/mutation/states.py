"""Which decisions are taken again under the lock, on the state that is there by then?"""

from __future__ import annotations

from tests.mutation.guard import LIFE, RACES, Guard, T

LOCKS = RACES + "test_locks.py"
LACKS = RACES + "test_upstream_lacks.py"

STATES = (
    Guard(
        "a runner that is over gets nothing",
        T + "claim.py",
        " or runner.is_done or ",
        " or ",
        (LACKS + "::test_a_claim_that_comes_after_the_scale_down_gets_nothing",),
    ),
    Guard(
        "a repeated poll repeats nothing that was acknowledged",
        T + "claim.py",
        "runner_id = %s AND state = 'assigned' AND poll_id = %s",
        "runner_id = %s AND poll_id = %s",
        (RACES + "test_late_calls.py::test_a_poll_without_a_name_repeats_nothing",),
    ),
    Guard(
        "another poll gets nothing of an earlier one",
        T + "claim.py",
        "runner_id = %s AND state = 'assigned' AND poll_id = %s",
        "runner_id = %s AND state = 'assigned' AND %s <> ''",
        (LIFE + "test_claim.py",),
    ),
    Guard(
        "a job that moved on is not failed as unpreparable",
        T + "claim.py",
        "    if job.state != JobState.QUEUED:\n        return\n",
        "",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "a job is claimed and prepared in one transaction",
        "ci/lifecycle/fetch.py",
        "@guarded\ndef _fetch",
        "def _fetch",
        (LIFE + "test_claim.py::test_a_job_that_cannot_be_prepared_ends_failed_and_the_next_is_given",),
    ),
    Guard(
        "a job with a runner is not retired from it",
        T + "retire_runner.py",
        " or _has_a_job(runner)",
        "",
        (LACKS + "::test_a_scale_down_that_comes_after_the_claim_leaves_the_runner",),
    ),
    Guard(
        "a runner that is over is not retired",
        T + "retire_runner.py",
        " or runner.is_done",
        "",
        (LIFE + "test_retire_runner.py",),
    ),
    Guard(
        "a runner for many jobs is not retired",
        T + "retire_runner.py",
        "not runner.ephemeral or ",
        "",
        (LIFE + "test_retire_runner.py",),
    ),
    Guard(
        "the first end of a runner stands",
        T + "runner_phase.py",
        "        if runner is None or runner.is_done:\n            return False\n",
        "        if runner is None:\n            return False\n",
        (LIFE + "test_runner_phase.py",),
    ),
    Guard(
        "a runner that ended stays when its job ends",
        T + "moves.py",
        '''another one is idle again."""
    locked = Runner.objects.select_for_update(no_key=True).filter(pk=runner.pk).first()
    if locked is None or locked.is_done:''',
        '''another one is idle again."""
    locked = Runner.objects.select_for_update(no_key=True).filter(pk=runner.pk).first()
    if locked is None:''',
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "a runner that ended stays when its job is lost",
        T + "moves.py",
        '''another one may come back."""
    locked = Runner.objects.select_for_update(no_key=True).filter(pk=runner.pk).first()
    if locked is None or locked.is_done:''',
        '''another one may come back."""
    locked = Runner.objects.select_for_update(no_key=True).filter(pk=runner.pk).first()
    if locked is None:''',
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "a state is reached from where it may be",
        T + "moves.py",
        "    if job.state not in ORIGINS[state]:\n",
        "    if False:\n",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "an end wants the acknowledgement first",
        T + "complete.py",
        "    if job.state != JobState.RUNNING:\n",
        "    if False:\n",
        (LIFE + "test_complete.py::test_it_wants_the_acknowledgement_first",),
    ),
    Guard(
        "steps want the acknowledgement first",
        T + "update_steps.py",
        "    if job.state != JobState.RUNNING:\n",
        "    if False:\n",
        (LIFE + "test_update_steps.py",),
    ),
    Guard(
        "an ended job has no more steps",
        T + "update_steps.py",
        "    if job.is_ended:\n        raise JobEnded(str(job.conclusion), job.cancel_reason)\n",
        "",
        (LIFE + "test_update_steps.py",),
    ),
    Guard(
        "the token under the lock: the stop at the log's limit",
        T + "append_log.py",
        "    check_token(job, token)\n    if job.state",
        "    if job.state",
        (LOCKS + "::test_a_job_given_to_another_while_its_full_log_is_handled_is_not_stopped",),
    ),
    Guard(
        "an ended job is not stopped at its log's limit",
        T + "append_log.py",
        "    if job.state == JobState.RUNNING and not job.cancel_reason:\n",
        "    if not job.cancel_reason:\n",
        (LACKS + "::test_a_job_that_ends_while_its_full_log_is_handled_ends_as_it_did",),
    ),
    Guard(
        "only a running job is lost",
        T + "deadlines.py",
        '    if job.state != JobState.RUNNING:\n        return ""\n',
        "",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "only its runner's job is released",
        T + "deadlines.py",
        "    if job.runner_id != runner_id or job.state not in ACTIVE_STATES:\n        return\n",
        "",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "a begun job is not requeued",
        T + "deadlines.py",
        "    if _has_begun(job):\n        raise",
        "    if False:\n        raise",
        (LIFE + "test_deadlines.py::test_requeueing_a_begun_job_is_refused",),
    ),
    Guard(
        "a job that is being cancelled is not requeued",
        T + "deadlines.py",
        "    if job.cancel_reason:\n        raise",
        "    if False:\n        raise",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "only an active job is requeued",
        T + "deadlines.py",
        "    if job.state not in ACTIVE_STATES:\n        raise",
        "    if False:\n        raise",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "an ended run is not cancelled",
        T + "cancel.py",
        "    if run.is_ended:\n        raise",
        "    if False:\n        raise",
        (LIFE + "test_cancel.py::test_an_ended_run_cannot_be_cancelled", RACES + "test_late_calls.py"),
    ),
    Guard(
        "an ended job is not cancelled",
        T + "cancel.py",
        "    if job.is_ended:\n        raise",
        "    if False:\n        raise",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "a job is asked to stop once",
        T + "cancel.py",
        "    elif job.cancel_reason:\n",
        "    elif False:\n",
        (LIFE + "test_cancel.py::test_asking_twice_changes_nothing", RACES + "test_late_calls.py"),
    ),
    Guard(
        "only an ended run is run again",
        T + "rerun.py",
        "    if not run.is_ended:\n",
        "    if False:\n",
        (LIFE + "test_rerun.py::test_a_run_that_has_not_ended_cannot_be_run_again",),
    ),
    Guard(
        "only a run that waits for it is approved",
        T + "approve_run.py",
        "    if run.is_ended or not run.approval_pending:\n",
        "    if run.is_ended:\n",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "only the hash of a token is kept",
        T + "claim.py",
        "_take(runner, poll_id, hash_token(token), limits)",
        "_take(runner, poll_id, token, limits)",
        (LIFE + "test_claim.py::test_it_stores_no_plaintext_token",),
    ),
    Guard(
        "the steps of an assignment go with it",
        T + "moves.py",
        "        Step.objects.filter(job=job).delete()\n",
        "        pass\n",
        (LIFE + "test_deadlines.py::test_a_lost_job_that_had_not_begun_is_queued_again",),
    ),
    Guard(
        "a passed deadline advances the run",
        T + "deadlines.py",
        "        done = _time_out(job)\n    advance(run)\n",
        "        done = _time_out(job)\n",
        (RACES + "test_late_calls.py::test_a_job_that_a_deadline_ends_ends_its_run",),
    ),
    Guard(
        "a lost job advances the run",
        T + "deadlines.py",
        '    advance(run)\n    return "lost"\n',
        '    return "lost"\n',
        (LIFE + "test_deadlines.py::test_a_lost_job_that_had_begun_ends_failed_with_the_reason",),
    ),
    Guard(
        "one waits for a concurrency group",
        T + "concurrency.py",
        "            _supersede(entrant, newest)\n",
        "            pass\n",
        (LIFE + "test_concurrency.py::test_one_runs_one_waits_and_an_older_waiter_is_superseded",),
    ),
    Guard(
        "a run's number is given once",
        T + "create_run.py",
        '        Workflow.objects.filter(pk=workflow.pk).update(run_count=F("run_count") - 1)\n',
        "",
        (RACES + "test_create_run.py",),
    ),
    Guard(
        "a job token dies with its job",
        "ci/lifecycle/tokens.py",
        "filter(token_hash=hash_token(token), state__in=ACTIVE_STATES)",
        "filter(token_hash=hash_token(token))",
        (RACES + "test_late_calls.py",),
    ),
    Guard(
        "the log's limit",
        "ci/storage/logs.py",
        "AND lines + %(count)s <= %(max_lines)s AND size + %(size)s <= %(max_bytes)s",
        "AND %(max_lines)s > 0 AND %(max_bytes)s > 0",
        ("tests/storage/test_append.py", LIFE + "test_append_log.py"),
    ),
    Guard(
        "a log is sealed once",
        "ci/storage/logs.py",
        "filter(pk=job_id, sealed_at=None).update(sealed_at=Now())",
        "filter(pk=job_id).update(sealed_at=Now())",
        ("tests/storage/test_seal_at_once.py",),
    ),
    Guard(
        "one merge records its file",
        "ci/storage/logs.py",
        "filter(pk=job_id, blob=name + _UNFINISHED).update(blob=stored)",
        "filter(pk=job_id).update(blob=stored)",
        ("tests/storage/test_seal_at_once.py",),
    ),
    Guard(
        "one merge records its name",
        "ci/storage/logs.py",
        "filter(pk=job_id, blob=log.blob).update(blob=name + _UNFINISHED)",
        "filter(pk=job_id).update(blob=name + _UNFINISHED)",
        ("tests/storage/test_seal_at_once.py",),
    ),
    Guard(
        "a run that nobody trusted caused gets no secret",
        "ci/lifecycle/contexts.py",
        "    if not job.run.trusted:\n        return {}\n    if job.parent",
        "    if job.parent",
        (LIFE + "test_settings_values.py::test_a_run_that_nobody_with_write_access_caused_gets_none",),
    ),
)

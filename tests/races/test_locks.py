"""What comes between the decision and its write must wait: each lock, with the rival that would get past it.

A lock is seen by who waits for it, and in what.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from django.db import connection

from ci.lifecycle import schedules, settings_values, signing_keys, transitions, workflow_switch
from ci.lifecycle.encryption import decrypt
from ci.lifecycle.errors import Conflict, LogLimit, Unauthenticated
from ci.models import ConcurrencyGroup, Job, JobState, Run, Runner, RunnerPhase, Scope, Secret, SigningKey, Workflow
from tests.lifecycle.test_deadlines import let_pass
from tests.lifecycle.test_schedule import due
from tests.playground import Assigned, Playground, states_of
from tests.races.interleaving import LOCK_RUN, WRITE_JOB, WRITE_RUNNER, Rival, rival_before

# The package exports a function of the module's own name.
claims = importlib.import_module("ci.lifecycle.transitions.claim")
WRITE_LOG = r"UPDATE ci_log|INSERT INTO \"ci_log\""
ARCHIVE = r'INSERT INTO "ci_runattempt"'
GROUPED = """
    on: push
    concurrency: deploy
    jobs:
      build: {runs-on: linux, steps: [{run: echo}]}
"""


def end(runner: Runner) -> bool:
    return transitions.finish_runner(runner_id=runner.pk, phase=RunnerPhase.FAILED, reason="Its process died.")


def test_a_claim_does_not_get_past_the_cancel_of_its_job(committing_playground: Playground) -> None:
    playground = committing_playground
    run = playground.run()
    runner = playground.runner()
    job = Job.objects.get()
    with rival_before(WRITE_JOB, lambda: playground.fetch(runner)) as rival:
        transitions.cancel_job(job_id=job.pk, actor=playground.alice)
    assert (rival.result, rival.error) == (None, None)
    assert states_of(run) == {"build": "cancelled"}


def test_a_claim_does_not_get_past_a_run_that_takes_its_jobs_group(committing_playground: Playground) -> None:
    playground = committing_playground
    workflow = GROUPED.replace("concurrency: deploy", "").replace(
        "{runs-on", "{concurrency: {group: deploy, cancel-in-progress: true}, runs-on"
    )
    first = playground.run(workflow)
    group = ConcurrencyGroup.objects.get()
    transitions.settle(group.pk)
    second = playground.run(workflow)
    runner = playground.runner()
    with rival_before(WRITE_JOB, lambda: playground.fetch(runner)) as rival:
        transitions.settle(group.pk)
    assert (rival.result, rival.error) == (None, None)
    assert states_of(first) == {"build": "cancelled"}
    assert states_of(second) == {"build": "queued"}


def test_a_line_of_a_log_is_written_before_its_job_is_taken_back(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    assigned = playground.assigned()
    take_back = lambda: transitions.requeue_job(job_id=assigned.id, actor=playground.operator)  # noqa: E731
    with rival_before(WRITE_LOG, take_back) as rival:
        assigned.log("mine")
    assert rival.error is None
    assert rival.waited_in.startswith('SELECT "ci_job"')
    assert assigned.job.state == "queued"


def test_a_repeated_poll_does_not_replace_the_token_of_who_acknowledged(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    runner = playground.runner()
    first = playground.assigned(runner, poll_id="poll")
    with rival_before(WRITE_JOB, first.heartbeat) as rival:
        again = playground.assigned(runner, poll_id="poll")
    assert rival.waited_in.startswith('SELECT "ci_job"')
    # The repeat was there first: its token counts, and the earlier one's heartbeat came too late.
    assert isinstance(rival.error, Unauthenticated)
    again.heartbeat()


def test_an_acknowledgement_during_a_repeated_poll_leaves_nothing_to_repeat(
    committing_playground: Playground,
) -> None:
    playground = committing_playground
    playground.run()
    runner = playground.runner()
    first = playground.assigned(runner, poll_id="poll")
    with rival_before(r'FROM "ci_job" .*FOR NO KEY UPDATE', first.heartbeat) as rival:
        assert playground.fetch(runner, poll_id="poll") is None
    assert rival.error is None
    first.heartbeat()


def test_the_end_of_a_process_is_not_overwritten_by_the_end_of_its_job(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    runner = playground.runner(ephemeral=True)
    assigned = playground.assigned(runner).begin()
    with rival_before(WRITE_RUNNER, lambda: end(runner)) as rival:
        assigned.complete()
    assert rival.waited_in
    assert rival.result is False, "it had ended already"
    runner.refresh_from_db()
    assert (runner.phase, runner.reason) == ("succeeded", "Its job build has ended.")


def test_the_end_of_a_process_is_not_overwritten_by_the_loss_of_its_job(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    runner = playground.runner(ephemeral=True)
    assigned = playground.assigned(runner)
    with rival_before(WRITE_RUNNER, lambda: end(runner)) as rival:
        transitions.requeue_job(job_id=assigned.id, actor=playground.operator)
    assert rival.waited_in
    assert rival.result is False, "it had ended already"
    runner.refresh_from_db()
    assert (runner.phase, runner.reason) == ("failed", "Its job was taken back: operator requeued it.")


def test_a_rerun_holds_its_group_before_its_run(committing_playground: Playground) -> None:
    playground = committing_playground
    run = playground.run(GROUPED)
    playground.assigned().begin().complete()
    group = ConcurrencyGroup.objects.get()
    with rival_before(ARCHIVE, lambda: transitions.settle(group.pk)) as rival:
        transitions.rerun(run_id=run.pk, actor=playground.alice)
    assert rival.error is None
    assert 'FROM "ci_concurrencygroup"' in rival.waited_in
    assert states_of(run) == {"build": "queued"}


def test_an_approval_holds_its_group_before_its_run(committing_playground: Playground) -> None:
    playground = committing_playground
    run = playground.run(GROUPED)
    Run.objects.filter(pk=run.pk).update(state="waiting", approval_pending=True)
    Job.objects.filter(run=run).update(state=JobState.BLOCKED, hold="run", queued_at=None)
    group = ConcurrencyGroup.objects.get()
    with rival_before(r'UPDATE "ci_run"', lambda: transitions.settle(group.pk)) as rival:
        transitions.approve_run(run_id=run.pk, actor=playground.alice)
    assert rival.error is None
    assert 'FROM "ci_concurrencygroup"' in rival.waited_in
    assert states_of(run) == {"build": "queued"}


def test_who_leaves_a_group_while_it_is_settled_waits(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run(GROUPED)
    second = playground.run(GROUPED)
    Run.objects.filter(pk=Run.objects.earliest("id").pk).update(concurrency_group=None)
    group = ConcurrencyGroup.objects.get()
    cancel = lambda: transitions.cancel_run(run_id=second.pk, actor=playground.alice)  # noqa: E731
    with rival_before(r'UPDATE "ci_run"', cancel) as rival:
        transitions.settle(group.pk)
    assert rival.error is None
    assert 'FROM "ci_run"' in rival.waited_in
    assert states_of(second) == {"build": "cancelled"}


def test_a_job_given_to_another_while_its_full_log_is_handled_is_not_stopped(
    committing_playground: Playground, settings: Any
) -> None:
    settings.LOG_LIMIT_LINES = 1
    playground = committing_playground
    playground.run()
    assigned = playground.assigned()
    other = playground.runner(name="other")

    def take_back_and_give() -> Assigned:
        let_pass(assigned.id)
        transitions.act_on_deadline(job_id=assigned.id)
        again = playground.assigned(other)
        again.heartbeat()
        return again

    with rival_before(LOCK_RUN, take_back_and_give) as rival, pytest.raises((Unauthenticated, LogLimit)):
        assigned.log("one", "two")
    assert rival.result.heartbeat().cancel is None


def test_a_due_time_is_met_by_one_of_two(committing_playground: Playground) -> None:
    row = due(committing_playground)
    with rival_before(r'UPDATE "ci_schedule"', lambda: schedules.fire(row.pk)) as rival:
        assert schedules.fire(row.pk)
    assert rival.waited_in
    assert rival.result is False
    assert Run.objects.filter(schedule=row).count() == 1


def test_of_two_who_disable_a_workflow_one_is_told(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    workflow = Workflow.objects.get()
    disable = lambda: workflow_switch.enable_workflow(  # noqa: E731
        workflow_id=workflow.pk, enabled=False, actor=playground.alice
    )
    with rival_before(r'UPDATE "ci_workflow"', disable) as rival:
        disable()
    assert isinstance(rival.error, Conflict)


def test_a_job_that_moves_while_a_claim_looks_at_the_queue_is_not_taken(
    committing_playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is held up in the middle of its statement, when it has seen the queue and locked nothing yet."""
    held_up = "WHERE (SELECT pg_advisory_xact_lock(7) IS NOT NULL) AND ci_labelset.labels <@"
    monkeypatch.setattr(claims, "CLAIM", claims.CLAIM.replace("WHERE ci_labelset.labels <@", held_up))
    playground = committing_playground
    run = playground.run()
    runner = playground.runner()
    claim = Rival(lambda: playground.fetch(runner))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7)")
        try:
            claim.start()
            assert claim.waited_in.lstrip().startswith("WITH heads")
            transitions.cancel_run(run_id=run.pk, actor=playground.alice)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(7)")
    claim.join()
    assert (claim.result, claim.error) == (None, None)
    assert states_of(run) == {"build": "cancelled"}


def test_a_secret_that_is_set_while_all_are_encrypted_anew_keeps_its_value(committing_playground: Playground) -> None:
    scope = Scope(repository=committing_playground.repository)
    given: dict[str, Any] = {"scope": scope, "name": "TOKEN", "actor": committing_playground.alice}
    settings_values.set_secret(value="old", **given)
    with rival_before(r'UPDATE "ci_secret"', lambda: settings_values.set_secret(value="new", **given)) as rival:
        settings_values.rotate_secrets()
    assert rival.error is None
    assert decrypt(Secret.objects.get().encrypted) == "new"


def test_two_who_need_the_first_signing_key_make_one(transactional_db: None) -> None:
    with rival_before(r'INSERT INTO "ci_signingkey"', signing_keys.current) as rival:
        key = signing_keys.current()
    assert rival.error is None
    assert "advisory" in rival.waited_in
    assert rival.result == key


def test_two_who_replace_the_signing_key_replace_it_twice(transactional_db: None) -> None:
    """Who asked for another key has not got it when the one that is in use was made before he asked."""
    signing_keys.current()
    with rival_before(r'INSERT INTO "ci_signingkey"', signing_keys.replace) as rival:
        assert signing_keys.replace()
    assert "advisory" in rival.waited_in
    assert (rival.result, rival.error) == (True, None)
    assert SigningKey.objects.filter(retired_at=None).count() == 1
    assert SigningKey.objects.filter(encrypted="").count() == 2

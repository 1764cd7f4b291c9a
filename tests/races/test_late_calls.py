"""Calls that come when what they are about has moved on: each looks again under its lock, and lets be."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from ci.lifecycle import registration, tokens, transitions
from ci.lifecycle.errors import Conflict
from ci.lifecycle.transitions.moves import IllegalMove, move
from ci.models import Job, JobState, Runner, RunnerPhase, Scope
from tests.api.calls import snapshot
from tests.lifecycle.test_deadlines import let_pass
from tests.playground import Assigned, Playground


@pytest.fixture
def single_use(playground: Playground) -> Assigned:
    """A job given to a single-use runner."""
    playground.run()
    return playground.assigned(playground.runner(ephemeral=True))


def process_ends(runner: Runner) -> None:
    assert transitions.finish_runner(runner_id=runner.pk, phase=RunnerPhase.OUTDATED, reason="Too old.")


def test_a_job_that_was_claimed_is_not_failed_as_unpreparable(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    before = snapshot()
    transitions.fail_unpreparable(job_id=assigned.id, note="no such action")
    assert snapshot() == before


def test_a_poll_without_a_name_repeats_nothing(single_use: Assigned) -> None:
    """What is acknowledged has forgotten its poll: an empty one must not be taken for it."""
    single_use.begin()
    assert transitions.repeat_claim(runner_id=single_use.runner.pk, poll_id="") is None
    single_use.heartbeat()


def test_the_end_of_its_job_leaves_a_runner_as_it_ended(single_use: Assigned) -> None:
    single_use.begin()
    process_ends(single_use.runner)
    single_use.complete()
    single_use.runner.refresh_from_db()
    assert (single_use.runner.phase, single_use.runner.reason) == ("outdated", "Too old.")


def test_the_loss_of_its_job_leaves_a_runner_as_it_ended(playground: Playground, single_use: Assigned) -> None:
    process_ends(single_use.runner)
    transitions.requeue_job(job_id=single_use.id, actor=playground.operator)
    single_use.runner.refresh_from_db()
    assert (single_use.runner.phase, single_use.runner.reason) == ("outdated", "Too old.")


def test_an_ended_job_moves_nowhere(single_use: Assigned) -> None:
    single_use.begin().complete()
    for state in (JobState.QUEUED, JobState.RUNNING, JobState.ENDED):
        with pytest.raises(IllegalMove):
            move(single_use.job, state, kind="wrong")


def test_a_job_that_is_not_acknowledged_is_not_lost_by_silence(single_use: Assigned) -> None:
    Job.objects.update(created_at=timezone.now() - timedelta(days=1))
    assert transitions.lose_job(job_id=single_use.id) == ""
    assert single_use.job.state == "assigned"


def test_a_job_that_another_runner_has_by_now_is_not_released(playground: Playground, single_use: Assigned) -> None:
    earlier = playground.runner(name="earlier")
    before = snapshot()
    transitions.release_from_runner(job_id=single_use.id, runner_id=earlier.pk, why="it was removed")
    assert snapshot() == before


def test_a_job_that_ended_is_not_released(single_use: Assigned) -> None:
    single_use.begin().complete()
    before = snapshot()
    transitions.release_from_runner(job_id=single_use.id, runner_id=single_use.runner.pk, why="it was removed")
    assert snapshot() == before


def test_a_job_that_is_being_cancelled_is_not_requeued(playground: Playground, single_use: Assigned) -> None:
    transitions.cancel_job(job_id=single_use.id, actor=playground.alice)
    with pytest.raises(Conflict, match="cancelled"):
        transitions.requeue_job(job_id=single_use.id, actor=playground.operator)


@pytest.mark.parametrize("state", ["queued", "ended"])
def test_a_job_that_no_runner_has_is_not_requeued(playground: Playground, state: str) -> None:
    playground.run()
    if state == "ended":
        playground.assigned().begin().complete()
    with pytest.raises(Conflict, match="only an assigned or running job"):
        transitions.requeue_job(job_id=Job.objects.get().pk, actor=playground.operator)


@pytest.mark.parametrize("force", [False, True])
def test_what_has_ended_is_not_cancelled(playground: Playground, single_use: Assigned, force: bool) -> None:
    single_use.begin().complete()
    run_id = single_use.job.run_id
    before = snapshot()
    with pytest.raises(Conflict, match="already ended"):
        transitions.cancel_job(job_id=single_use.id, actor=playground.alice, force=force)
    with pytest.raises(Conflict, match="already ended"):
        transitions.cancel_run(run_id=run_id, actor=playground.alice, force=force)
    assert snapshot() == before


def test_a_job_is_asked_to_stop_once(playground: Playground, single_use: Assigned) -> None:
    transitions.cancel_job(job_id=single_use.id, actor=playground.alice)
    before = snapshot()
    with pytest.raises(Conflict, match="already"):
        transitions.cancel_job(job_id=single_use.id, actor=playground.bob)
    assert snapshot() == before


def test_a_run_that_waits_for_no_approval_is_not_approved(playground: Playground) -> None:
    run = playground.run()
    before = snapshot()
    with pytest.raises(Conflict, match="does not wait"):
        transitions.approve_run(run_id=run.pk, actor=playground.alice)
    assert snapshot() == before


def test_a_job_token_dies_with_its_job(single_use: Assigned) -> None:
    single_use.begin()
    assert tokens.actor_of_job_token(single_use.token) is not None
    single_use.complete()
    assert tokens.actor_of_job_token(single_use.token) is None


def test_a_job_that_a_deadline_ends_ends_its_run(playground: Playground) -> None:
    run = playground.run()
    let_pass(Job.objects.get().pk)
    assert transitions.act_on_deadline(job_id=Job.objects.get().pk) == "queue_timeout"
    run.refresh_from_db()
    assert (run.state, run.conclusion) == ("ended", "cancelled")


def test_a_registration_token_is_revoked_once(playground: Playground) -> None:
    token, _ = registration.create_registration_token(scope=Scope(), created_by=playground.operator)
    registration.revoke_registration_token(token_id=token.pk, actor=playground.operator)
    before = snapshot()
    with pytest.raises(Conflict, match="already"):
        registration.revoke_registration_token(token_id=token.pk, actor=playground.operator)
    assert snapshot() == before

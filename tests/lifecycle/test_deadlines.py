"""What the watch does: unacknowledged, lost, timed out, cancelled for too long, queued for too long, log sealed."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.db.models import F
from django.utils import timezone
from pytest_django.fixtures import Settings

from ci.lifecycle import registration, sweeps, transitions
from ci.lifecycle.errors import Conflict, LogLimit, NotFound, Unauthenticated
from ci.models import Event, Heartbeat, Job, Log, Run, Runner, Step
from tests.playground import ONE_JOB, Assigned, Playground, states_of


def let_pass(job_id: int, seconds: float = 10**6) -> None:
    """Move the job's times into the past, as if the time had passed."""
    passed = timedelta(seconds=seconds)
    Job.objects.filter(pk=job_id).update(deadline_at=F("deadline_at") - passed, ended_at=F("ended_at") - passed)


def fall_silent(assigned: Assigned, seconds: float = 61) -> None:
    Heartbeat.objects.filter(job=assigned.id).update(at=timezone.now() - timedelta(seconds=seconds))


def test_an_unacknowledged_assignment_goes_back_to_the_queue(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assert sweeps.sweep() == 0
    let_pass(assigned.id)
    sweeps.sweep()
    job = assigned.job
    assert (job.state, job.runner, job.token_hash, job.poll_id) == ("queued", None, None, "")
    with pytest.raises(Unauthenticated):
        assigned.heartbeat()
    again = playground.assigned(playground.runner(name="beta"))
    assert (again.id, again.job.assignment) == (assigned.id, 2)


def test_the_timeout_of_jobs_that_name_none_is_a_setting(playground: Playground, settings: Settings) -> None:
    settings.JOB_TIMEOUT_MINUTES = 45
    playground.run()
    assert Job.objects.get().timeout_minutes == 45
    named = playground.run(ONE_JOB.replace("runs-on: linux", "runs-on: linux\n        timeout-minutes: 7"))
    assert Job.objects.get(run=named).timeout_minutes == 7


def test_a_cancel_wins_over_the_queue(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    transitions.cancel_job(job_id=assigned.id, actor=playground.alice)
    let_pass(assigned.id)
    sweeps.sweep()
    assert (assigned.job.state, assigned.job.conclusion) == ("ended", "cancelled")


def test_a_single_use_runner_that_did_not_acknowledge_is_used_up(playground: Playground) -> None:
    playground.run()
    runner = playground.runner(ephemeral=True)
    assigned = playground.assigned(runner)
    let_pass(assigned.id)
    sweeps.sweep()
    runner.refresh_from_db()
    assert runner.phase == "failed"
    assert "did not acknowledge" in runner.reason
    assert playground.fetch(runner) is None


def test_a_lost_job_that_had_not_begun_is_queued_again(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assigned.heartbeat()
    assigned.steps({"number": 1, "name": "Set up job", "state": "running"})
    fall_silent(assigned)
    sweeps.sweep()
    assert assigned.job.state == "queued"
    assert not Step.objects.filter(job=assigned.id).exists()


def test_a_lost_job_that_had_begun_ends_failed_with_the_reason(playground: Playground) -> None:
    run = playground.run()
    assigned = playground.assigned().begin()
    fall_silent(assigned, seconds=75)
    sweeps.sweep()
    job = assigned.job
    assert (job.state, job.conclusion) == ("ended", "failure")
    assert job.end_note == "runner alpha was lost: 75 s without a heartbeat."
    run.refresh_from_db()
    assert run.conclusion == "failure"


def test_a_heartbeat_in_time_keeps_it(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    fall_silent(assigned)
    assigned.heartbeat()
    assert transitions.lose_job(job_id=assigned.id) == ""
    assert assigned.job.state == "running"


def test_a_job_over_its_time_is_asked_then_ended_by_force(playground: Playground) -> None:
    run = playground.run()
    assigned = playground.assigned().begin()
    let_pass(assigned.id)
    sweeps.sweep()
    assert assigned.heartbeat().cancel == "time_budget"
    let_pass(assigned.id)
    sweeps.sweep()
    assert states_of(run) == {"build": "cancelled"}
    assert "timeout" in assigned.job.end_note


def test_a_job_nobody_takes_ends(playground: Playground) -> None:
    run = playground.run()
    job = Job.objects.get(run=run)
    let_pass(job.pk)
    sweeps.sweep()
    job.refresh_from_db()
    assert (job.conclusion, job.cancel_reason) == ("cancelled", "queue_timeout")
    assert job.end_note == "No runner took it in 24 h."


def test_a_deadline_that_has_not_passed_changes_nothing(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assert transitions.act_on_deadline(job_id=assigned.id) == ""
    assert assigned.job.state == "assigned"


def test_the_next_deadline_is_the_nearest(playground: Playground) -> None:
    assert sweeps.next_deadline() is None
    playground.run()
    queued = sweeps.next_deadline()
    assigned = playground.assigned()
    assert queued is not None
    assert sweeps.next_deadline() == assigned.job.deadline_at
    assert assigned.job.deadline_at is not None
    assert assigned.job.deadline_at < queued


def test_a_log_is_sealed_after_the_end_and_until_then_takes_late_lines(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assigned.log("one")
    assigned.complete()
    assigned.log("late", offset=1)
    let_pass(assigned.id, seconds=settings.LOG_SEAL_SECONDS)
    sweeps.sweep()
    assert Log.objects.get(job=assigned.id).sealed_at is not None
    with pytest.raises(LogLimit):
        assigned.log("too late", offset=2)


def test_removing_a_runner_loses_its_job(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    registration.remove_runner(runner_id=assigned.runner.pk, actor=playground.operator)
    assert not Runner.objects.filter(pk=assigned.runner.pk).exists()
    assert assigned.job.conclusion == "failure"
    assert assigned.job.end_note == "operator removed its runner."


def test_requeueing_takes_an_unbegun_job_back(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    transitions.requeue_job(job_id=assigned.id, actor=playground.operator)
    assert assigned.job.state == "queued"
    assert Event.objects.filter(job=assigned.id, kind="requeued", detail__contains="operator").exists()


def test_requeueing_a_begun_job_is_refused(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    with pytest.raises(Conflict, match="re-run"):
        transitions.requeue_job(job_id=assigned.id, actor=playground.operator)


def test_an_unknown_job_is_not_found(playground: Playground) -> None:
    with pytest.raises(NotFound):
        transitions.act_on_deadline(job_id=987654)


def test_a_job_may_have_a_grace_of_its_own(playground: Playground) -> None:
    playground.run("""
        on: push
        jobs:
          build: {runs-on: linux, cancel-timeout-minutes: 2, steps: [{run: echo}]}
    """)
    assigned = playground.assigned().begin()
    assert assigned.payload["job"]["cancel_grace_seconds"] == 120
    transitions.cancel_job(job_id=assigned.id, actor=playground.alice)
    requested = assigned.job.cancel_requested_at
    assert requested is not None
    assert assigned.heartbeat().force_at == requested + timedelta(minutes=2)


def test_a_run_that_is_never_over_is_cancelled_and_then_ended(playground: Playground) -> None:
    run = playground.run("""
        on: push
        jobs:
          first: {runs-on: linux, steps: [{run: echo}]}
          last: {needs: first, if: always(), runs-on: linux, steps: [{run: echo}]}
    """)
    days = timedelta(days=35)
    assert run.deadline_at is not None
    assert days - timedelta(minutes=5) < run.deadline_at - timezone.now() <= days
    assert not transitions.act_on_run_deadline(run_id=run.pk)
    Run.objects.filter(pk=run.pk).update(deadline_at=timezone.now())
    sweeps.sweep()
    assert states_of(run) == {"first": "cancelled", "last": "queued"}
    assert Job.objects.get(run=run, key="first").end_note == "The run was not over after 35 days."
    assert sweeps.sweep() == 0
    Run.objects.filter(pk=run.pk).update(deadline_at=timezone.now())
    sweeps.sweep()
    assert states_of(run) == {"first": "cancelled", "last": "cancelled"}
    run.refresh_from_db()
    assert (run.conclusion, run.deadline_at) == ("cancelled", None)
    assert {job.cancel_reason for job in Job.objects.filter(run=run)} == {"time_budget"}


def test_a_run_that_waits_for_an_approval_does_not_wait_for_ever(playground: Playground) -> None:
    run = playground.run()
    Run.objects.filter(pk=run.pk).update(state="waiting", approval_pending=True, deadline_at=timezone.now())
    Job.objects.filter(run=run).update(state="blocked", hold="run", queued_at=None, deadline_at=None)
    sweeps.sweep()
    run.refresh_from_db()
    assert (run.state, run.conclusion, run.cancel_reason) == ("ended", "cancelled", "time_budget")


def test_nobody_is_lost_for_a_silence_that_may_have_been_the_servers(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    fall_silent(assigned)
    later = timezone.now() + timedelta(seconds=30)
    assert sweeps.sweep(losing_from=later) == 0
    assert assigned.job.state == "running"
    assert sweeps.next_deadline(losing_from=later) == later
    assert sweeps.sweep(losing_from=timezone.now()) == 1
    assert assigned.job.conclusion == "failure"

"""heartbeat, acknowledge: assigned -> running."""

from datetime import timedelta

import pytest
from django.conf import settings

from ci.lifecycle import transitions
from ci.lifecycle.errors import JobEnded, NotFound, Unauthenticated
from ci.models import Event, Heartbeat, Job, JobState, Runner
from tests.playground import Playground


def test_the_first_one_acknowledges(playground: Playground) -> None:
    run = playground.run()
    assigned = playground.assigned(poll_id="p1")
    assigned.heartbeat()
    job = assigned.job
    assert (job.state, job.poll_id) == (JobState.RUNNING, "")
    run.refresh_from_db()
    assert run.state == "running"
    assert Event.objects.filter(job=job, kind="acknowledged", from_state="assigned", to_state="running").exists()


def test_it_answers_the_deadline(playground: Playground) -> None:
    playground.run("""
        on: push
        jobs:
          build: {runs-on: linux, timeout-minutes: 5, steps: [{run: echo}]}
    """)
    assigned = playground.assigned()
    answer = assigned.heartbeat()
    started = assigned.job.started_at
    assert started is not None
    assert answer.deadline == started + timedelta(minutes=5)


def test_it_makes_the_runner_busy(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assigned.heartbeat()
    assert Runner.objects.get(pk=assigned.runner.pk).phase == "running"


def test_it_tells_of_a_cancel(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assigned.heartbeat()
    transitions.cancel_job(job_id=assigned.id, actor=playground.alice)
    answer = assigned.heartbeat()
    requested = assigned.job.cancel_requested_at
    assert requested is not None
    assert answer.cancel == "owner"
    assert answer.force_at == requested + timedelta(seconds=settings.CANCEL_GRACE_SECONDS)


def test_it_is_not_recorded_for_a_job_that_ended(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assigned.heartbeat()
    assigned.complete()
    before = Heartbeat.objects.get(job=assigned.id).at
    with pytest.raises(JobEnded) as ended:
        assigned.heartbeat()
    assert ended.value.conclusion == "success"
    assert Heartbeat.objects.get(job=assigned.id).at == before


def test_a_wrong_token_is_unauthenticated_and_acknowledges_nothing(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    with pytest.raises(Unauthenticated):
        transitions.heartbeat(job_id=assigned.id, token="frj_wrong")
    assert assigned.job.state == JobState.ASSIGNED


def test_a_vanished_job_is_not_found(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    Job.objects.filter(pk=assigned.id).delete()
    with pytest.raises(NotFound):
        assigned.heartbeat()

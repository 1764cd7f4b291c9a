"""What does a heartbeat tell the runner?"""

from datetime import timedelta

import pytest
from django.utils.dateparse import parse_datetime

from ci.lifecycle import transitions
from ci.models import Job, JobState
from tests.api.calls import call, error_of


def beat(assigned, **body):
    return call("POST", f"jobs/{assigned.id}/heartbeat", token=assigned.token, body=body)


def test_the_first_one_acknowledges_and_says_until_when_the_job_may_run(assigned):
    response = beat(assigned)
    assert response.status_code == 200
    answer = response.json()
    assert (answer["cancel"], answer["force_at"]) == (None, None)
    left = parse_datetime(answer["deadline"]) - parse_datetime(answer["now"])
    assert timedelta(minutes=359) < left <= timedelta(minutes=360)
    assert assigned.job.state == JobState.RUNNING


def test_it_brings_a_cancel_with_the_time_of_its_force(playground, running):
    transitions.cancel_job(job_id=running.id, actor=playground.alice)
    answer = beat(running).json()
    assert answer["cancel"] == "owner"
    assert parse_datetime(answer["force_at"]) > parse_datetime(answer["now"])


def test_of_an_ended_job_it_says_how_it_ended(playground, running):
    transitions.cancel_run(run_id=running.job.run_id, actor=playground.alice, force=True)
    error = error_of(beat(running), 409, "job_ended")
    assert (error["conclusion"], error["reason"]) == ("cancelled", "owner")


def test_a_job_that_succeeded_ended_for_no_reason(running):
    running.complete()
    error = error_of(beat(running), 409, "job_ended")
    assert (error["conclusion"], error["reason"]) == ("success", "")


@pytest.mark.parametrize("wait", [-0.1, 51, "1", False])
def test_it_refuses_what_is_no_wait(assigned, wait):
    error_of(beat(assigned, wait=wait), 400, "invalid")
    assert Job.objects.get().state == JobState.ASSIGNED

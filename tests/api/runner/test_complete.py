"""Does a job end once, and does a repeat get the same answer?"""

import pytest

from ci.lifecycle import transitions
from ci.models import Event, JobState, Step
from tests.api.calls import call, error_of


def complete(assigned, conclusion="success", **body):
    return call("POST", f"jobs/{assigned.id}/complete", token=assigned.token, body={"conclusion": conclusion, **body})


def test_it_ends_the_job_with_its_outputs_and_steps(running):
    step = {"number": 3, "name": "Complete job", "state": "ended", "conclusion": "success"}
    response = complete(running, outputs={"version": " 1.2 ", "empty": ""}, steps=[step])
    assert (response.status_code, response.json()) == (200, {"conclusion": "success", "reason": ""})
    assert (running.job.state, running.job.outputs) == (JobState.ENDED, {"version": " 1.2 ", "empty": ""})
    assert Step.objects.get(job=running.id, number=3).conclusion == "success"


@pytest.mark.parametrize("second", ["success", "failure", "cancelled"])
def test_twice_gives_the_first_answer_and_changes_nothing(running, second):
    first = complete(running, "failure", outputs={"a": "1"})
    job, events = running.job, Event.objects.count()
    again = complete(running, second, outputs={"a": "2"})
    assert (again.status_code, again.json()) == (200, first.json())
    assert (running.job.outputs, running.job.ended_at) == ({"a": "1"}, job.ended_at)
    assert Event.objects.count() == events


def test_a_cancel_that_came_before_wins(playground, running):
    transitions.cancel_job(job_id=running.id, actor=playground.bob)
    assert complete(running, "success").json() == {"conclusion": "cancelled", "reason": "owner"}


def test_before_the_acknowledgement_it_is_a_conflict(assigned):
    error_of(complete(assigned), 409, "conflict")
    assert assigned.job.state == JobState.ASSIGNED


@pytest.mark.parametrize(
    ("conclusion", "body", "field"),
    [
        ("skipped", {}, "conclusion"),
        ("great", {}, "conclusion"),
        (None, {}, "conclusion"),
        ("success", {"outputs": []}, "outputs"),
        ("success", {"outputs": {"a": {}}}, "outputs"),
        ("success", {"outputs": {"a": None}}, "outputs"),
        ("success", {"outputs": {"x" * 256: "a"}}, "outputs"),
        ("success", {"outputs": {str(n): "a" for n in range(101)}}, "outputs"),
        ("success", {"outputs": {"a": "x" * 600_000, "b": "x" * 600_000}}, "outputs"),
        ("success", {"steps": {}}, "steps"),
        ("success", {"steps": [{"number": 1, "name": "x", "state": "ended"}]}, "steps"),
    ],
)
def test_what_is_wrong_is_named_and_the_job_goes_on(running, conclusion, body, field):
    error = error_of(complete(running, conclusion, **body), 400, "invalid")
    assert list(error["errors"]) == [field]
    assert running.job.state == JobState.RUNNING

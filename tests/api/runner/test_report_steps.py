"""Are steps taken as reported, and wrong ones refused by name?"""

import pytest

from ci.models import Step
from tests.api.calls import TIME, call, error_of


def report(assigned, *steps):
    return call("PATCH", f"jobs/{assigned.id}/steps", token=assigned.token, body={"steps": list(steps)})


def step(number=3, **change):
    return {"number": number, "name": "Run make", "state": "running"} | change


def test_a_step_is_kept_with_all_it_says(running):
    annotation = {"level": "error", "message": "boom", "path": "a.c", "line": 3, "end_line": 4, "title": "T"}
    response = report(
        running,
        step(
            state="ended",
            conclusion="failure",
            started_at=TIME,
            ended_at=TIME,
            first_line=7,
            line_count=5,
            annotations=[annotation],
            summary="# Hi\n",
        ),
    )
    assert (response.status_code, response.json()) == (200, {})
    kept = Step.objects.get(job=running.id, number=3)
    assert (kept.name, kept.state, kept.conclusion) == ("Run make", "ended", "failure")
    assert (kept.first_line, kept.line_count, kept.summary) == (7, 5, "# Hi\n")
    assert kept.annotations == [annotation]
    assert kept.started_at.isoformat() == "2026-11-30T12:00:00+00:00"


def test_a_finished_step_does_not_change_again(running):
    report(running, step(state="ended", conclusion="success"))
    assert report(running, step(state="ended", conclusion="failure")).status_code == 200
    assert report(running, step(state="running")).status_code == 200
    assert Step.objects.get(job=running.id, number=3).conclusion == "success"


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 0},
        {"number": -1},
        {"number": 10**20},
        {"number": "x"},
        {"number": None},
        {"name": None},
        {"state": "begun"},
        {"state": "ended"},
        {"state": "ended", "conclusion": None},
        {"conclusion": "success"},
        {"state": "ended", "conclusion": "great"},
        {"started_at": "yesterday"},
        {"started_at": 5},
        {"first_line": -1},
        {"line_count": 2**31},
        {"annotations": {}},
        {"annotations": [{"level": "fatal", "message": "x"}]},
        {"annotations": [{"message": "x"}]},
        {"annotations": [{"level": "error", "message": "x"}] * 101},
        {"summary": "x" * (1024 * 1024 + 1)},
    ],
)
def test_a_wrong_step_is_refused_and_none_of_its_batch_is_taken(running, wrong):
    before = Step.objects.filter(job=running.id).count()
    error = error_of(report(running, step(4), step() | wrong), 400, "invalid")
    assert list(error["errors"]) == ["steps"]
    assert Step.objects.filter(job=running.id).count() == before


@pytest.mark.parametrize("steps", [None, {}, "x", [1], [[]]])
def test_it_refuses_what_is_no_list_of_steps(running, steps):
    response = call("PATCH", f"jobs/{running.id}/steps", token=running.token, body={"steps": steps})
    error_of(response, 400, "invalid")


def test_a_long_name_is_cut(running):
    assert report(running, step(name="x" * 10_000)).status_code == 200
    assert len(Step.objects.get(job=running.id, number=3).name) == 500


def test_before_the_acknowledgement_it_is_a_conflict(assigned):
    error_of(report(assigned, step()), 409, "conflict")


def test_of_an_ended_job_it_says_how_it_ended(running):
    running.complete("failure")
    error = error_of(report(running, step()), 409, "job_ended")
    assert error["conclusion"] == "failure"

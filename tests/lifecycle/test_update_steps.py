"""update_steps: how far a job has come; what is finished does not change."""

from typing import Any

import pytest

from ci.lifecycle.errors import Conflict, InvalidInput, JobEnded
from ci.models import Step
from tests.playground import Playground


def step(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {"number": number, "name": f"Step {number}", "state": state, **more}


def test_a_step_begins_and_ends(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    note = {"level": "warning", "message": "Old", "path": "a.py", "line": 3}
    lines = {"first_line": 4, "line_count": 2}
    assigned.steps(step(2, "ended", conclusion="success", annotations=[note], summary="# Hi", **lines))
    row = Step.objects.get(job=assigned.id, number=2)
    assert (row.state, row.conclusion, row.first_line, row.line_count) == ("ended", "success", 4, 2)
    assert row.annotations == [note]
    assert row.summary == "# Hi"
    assert row.ended_at is not None


def test_a_finished_step_does_not_change(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assigned.steps(step(2, "ended", conclusion="failure"))
    assigned.steps(step(2, "running"), step(2, "ended", conclusion="success"))
    assert Step.objects.get(job=assigned.id, number=2).conclusion == "failure"


def test_an_ended_job_answers_its_end(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned().begin()
    assigned.complete()
    with pytest.raises(JobEnded):
        assigned.steps(step(3, "running"))
    assert not Step.objects.filter(job=assigned.id, number=3).exists()


def test_before_the_acknowledgement_it_is_refused(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    with pytest.raises(Conflict):
        assigned.steps(step(1, "running"))


def test_a_step_number_is_bounded_and_nothing_is_kept(playground: Playground) -> None:
    playground.run()
    assigned = playground.assigned()
    assigned.heartbeat()
    with pytest.raises(InvalidInput):
        assigned.steps(step(1, "running"), step(5000, "running"))
    assert not Step.objects.filter(job=assigned.id).exists()

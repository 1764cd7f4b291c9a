"""Which short ways to a workflow and an event do these tests share?"""

import textwrap
from typing import Any

import pytest

from ci.workflow import Event, Problem, Workflow, WorkflowErrors, load

PATH = ".github/workflows/ci.yml"


def loaded(text: str) -> Workflow:
    return load(PATH, {PATH: textwrap.dedent(text)})


def with_trigger(on: str) -> Workflow:
    """A workflow of one job; `on` is the YAML of its trigger, as it stands after `on:`."""
    return loaded(f"on:{on}\njobs:\n  a:\n    runs-on: x\n")


def problems(text: str | bytes) -> tuple[Problem, ...]:
    """The problems of a text that must be refused."""
    with pytest.raises(WorkflowErrors) as refused:
        load(PATH, {PATH: textwrap.dedent(text) if isinstance(text, str) else text})
    assert 1 <= len(refused.value.problems) <= 10
    for problem in refused.value.problems:
        assert problem.path == PATH
        assert len(problem.message) <= 500
    return refused.value.problems


def only_problem(text: str | bytes) -> Problem:
    found = problems(text)
    assert len(found) == 1, found
    return found[0]


def push(ref: str = "refs/heads/main", *, paths: tuple[str, ...] | None = None, **payload: Any) -> Event:
    return Event("push", {"ref": ref, "event_name": "push", "event": payload}, changed_paths=paths)


def event(name: str, **payload: Any) -> Event:
    return Event(name, {"event_name": name, "event": payload})

"""dispatch_workflow: a run by hand, with typed inputs."""

import pytest

from ci.lifecycle.dispatch import dispatch_workflow
from ci.lifecycle.errors import Conflict, InvalidInput, NotFound
from ci.models import Run, Workflow
from tests.playground import ONE_JOB, WORKFLOW, Playground

MANUAL = """
    name: Release
    on:
      workflow_dispatch:
        inputs:
          level: {type: choice, options: [patch, minor], required: true}
          dry: {type: boolean, default: true}
          count: {type: number, default: 3}
    jobs:
      release: {runs-on: linux, steps: [{run: echo}]}
"""


def dispatch(playground: Playground, **options: object) -> Run:
    values = {"path": WORKFLOW, "ref": "main", "inputs": {"level": "minor"}, **options}
    return dispatch_workflow(repository=playground.repository, actor=playground.bob, **values)  # type: ignore[arg-type]


def test_it_starts_a_run_with_typed_inputs(playground: Playground) -> None:
    playground.push({WORKFLOW: MANUAL})
    run = dispatch(playground)
    assert (run.event, run.actor_name, run.ref) == ("workflow_dispatch", "bob", "refs/heads/main")
    assert run.inputs == {"level": "minor", "dry": True, "count": 3}
    assert run.payload["inputs"] == {"level": "minor", "dry": "true", "count": "3"}
    assert playground.assigned().payload["contexts"]["inputs"]["dry"] is True


def test_each_one_is_a_run_of_its_own(playground: Playground) -> None:
    playground.push({WORKFLOW: MANUAL})
    assert dispatch(playground).number + 1 == dispatch(playground).number


def test_wrong_inputs_are_named(playground: Playground) -> None:
    playground.push({WORKFLOW: MANUAL})
    with pytest.raises(InvalidInput) as refused:
        dispatch(playground, inputs={"level": "huge", "extra": "x", "count": "many"})
    assert set(refused.value.errors) == {"level", "extra", "count"}
    assert not Run.objects.exists()


def test_inputs_that_are_too_long_together_are_told_in_a_plain_sentence(playground: Playground) -> None:
    playground.push({WORKFLOW: MANUAL})
    with pytest.raises(InvalidInput, match=r"^The inputs are too long"):
        dispatch(playground, inputs={"level": "x" * 70_000})


@pytest.mark.parametrize("options", [{"ref": "nowhere"}, {"ref": "--help"}, {"path": ".github/workflows/no.yml"}])
def test_an_unknown_ref_or_file_is_not_found(playground: Playground, options: dict[str, str]) -> None:
    playground.push({WORKFLOW: MANUAL})
    with pytest.raises(NotFound):
        dispatch(playground, **options)


def test_a_workflow_without_the_trigger_is_refused(playground: Playground) -> None:
    playground.push({WORKFLOW: ONE_JOB})
    with pytest.raises(Conflict, match="workflow_dispatch"):
        dispatch(playground)


def test_a_disabled_workflow_is_refused(playground: Playground) -> None:
    playground.push({WORKFLOW: MANUAL})
    Workflow.objects.update(enabled=False)
    with pytest.raises(Conflict, match="disabled"):
        dispatch(playground)

"""A workflow's switch: off, nothing starts it; who turned it stands in an event."""

import pytest

from ci.lifecycle.dispatch import dispatch_workflow
from ci.lifecycle.errors import Conflict, NotFound
from ci.lifecycle.fired_events import never_fired
from ci.lifecycle.workflow_switch import enable_workflow
from ci.models import Event, Run, Workflow
from tests.playground import WORKFLOW, Playground

BY_HAND = "on: [push, workflow_dispatch]\njobs: {a: {runs-on: linux, steps: [{run: echo}]}}\n"


def test_a_disabled_one_is_not_started_until_it_is_enabled_again(playground: Playground) -> None:
    workflow = playground.run(BY_HAND).workflow
    enable_workflow(workflow_id=workflow.pk, enabled=False, actor=playground.bob)
    playground.push({"a": "1"})
    with pytest.raises(Conflict, match="disabled"):
        dispatch_workflow(
            repository=playground.repository, path=WORKFLOW, ref="main", inputs={}, actor=playground.alice
        )
    assert Run.objects.count() == 1
    enable_workflow(workflow_id=workflow.pk, enabled=True, actor=playground.bob)
    playground.push({"a": "2"})
    assert Run.objects.count() == 2


def test_a_push_does_not_enable_it(playground: Playground) -> None:
    workflow = playground.run(BY_HAND).workflow
    enable_workflow(workflow_id=workflow.pk, enabled=False, actor=playground.bob)
    playground.push({WORKFLOW: BY_HAND.replace("echo", "date")})
    assert not Workflow.objects.get().enabled


def test_each_turn_leaves_an_event(playground: Playground) -> None:
    workflow = playground.run(BY_HAND).workflow
    enable_workflow(workflow_id=workflow.pk, enabled=False, actor=playground.bob)
    event = Event.objects.get(kind="workflow_disabled")
    assert (event.actor, event.from_state, event.to_state) == (playground.bob, "enabled", "disabled")
    assert event.detail == f"{WORKFLOW} of alice/widgets"


def test_turning_it_to_where_it_stands_is_a_conflict(playground: Playground) -> None:
    workflow = playground.run(BY_HAND).workflow
    with pytest.raises(Conflict, match="enabled already"):
        enable_workflow(workflow_id=workflow.pk, enabled=True, actor=playground.bob)
    with pytest.raises(NotFound):
        enable_workflow(workflow_id=workflow.pk + 1, enabled=True, actor=playground.bob)
    assert not Event.objects.filter(kind__startswith="workflow_").exists()


def test_events_that_nothing_fires_are_told_apart() -> None:
    assert never_fired(["push", "release", "pull_request", "schedule"]) == ["pull_request", "release"]

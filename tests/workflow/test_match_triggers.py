"""Which events start a workflow?"""

from typing import Any

import pytest

from ci.workflow import Event
from ci.workflow.triggers import matches

from .support import event, push, with_trigger

MAIN, TOPIC, TAG = "refs/heads/main", "refs/heads/topic/x", "refs/tags/v1.2"

# the trigger, ref, changed paths, whether it runs
PUSHES: list[tuple[str, str, tuple[str, ...] | None, bool]] = [
    (" push", MAIN, None, True),
    (" push", TAG, None, True),
    (" [create, push]", MAIN, None, True),
    (" create", MAIN, None, False),
    (" {push: {branches: main}}", MAIN, None, True),
    (" {push: {branches: main}}", TOPIC, None, False),
    (" {push: {branches: main}}", TAG, None, False),
    (" {push: {branches: ['topic/*']}}", TOPIC, None, True),
    (" {push: {branches: ['*']}}", TOPIC, None, False),
    (" {push: {branches: ['**', '!topic/**']}}", TOPIC, None, False),
    (" {push: {branches: ['!topic/**', '**']}}", TOPIC, None, True),
    (" {push: {branches: ['**', '!topic/**', 'topic/x']}}", TOPIC, None, True),
    (" {push: {branches-ignore: [main]}}", MAIN, None, False),
    (" {push: {branches-ignore: [main]}}", TOPIC, None, True),
    (" {push: {branches-ignore: [main]}}", TAG, None, False),
    (" {push: {tags: ['v*']}}", TAG, None, True),
    (" {push: {tags: ['v*']}}", MAIN, None, False),
    (" {push: {tags: ['v[2-9]*']}}", TAG, None, False),
    (" {push: {tags-ignore: ['v1.*']}}", TAG, None, False),
    (" {push: {tags-ignore: ['**'], paths: [project.yaml]}}", MAIN, ("project.yaml",), False),
    (" {push: {branches: [main], tags: ['v*']}}", TAG, None, True),
    (" {push: {paths: ['foo/**']}}", TAG, ("bar",), True),
    (" {push: {paths: ['foo/**']}}", MAIN, ("bar", "foo/a"), True),
    (" {push: {paths: ['foo/**']}}", MAIN, ("bar",), False),
    (" {push: {paths: ['foo/**']}}", MAIN, None, True),
    (" {push: {paths: ['**', '!docs/**']}}", MAIN, ("docs/a.md",), False),
    (" {push: {paths-ignore: ['docs/**', '*.md']}}", MAIN, ("docs/a", "b.md"), False),
    (" {push: {paths-ignore: ['docs/**', '*.md']}}", MAIN, ("docs/a", "b.c"), True),
    (" {push: {branches: [main], paths: [a]}}", MAIN, ("b",), False),
    (" {push: {branches: [], tags: ['v*']}}", MAIN, None, False),
]


@pytest.mark.parametrize(("on", "ref", "paths", "runs"), PUSHES)
def test_a_push_is_filtered_as_on_github(on: str, ref: str, paths: tuple[str, ...] | None, runs: bool) -> None:
    assert matches(with_trigger(on), push(ref, paths=paths)) is runs


def test_the_deletion_of_a_branch_is_no_push_to_it() -> None:
    assert not matches(with_trigger(" push"), push(MAIN, deleted=True))
    assert matches(with_trigger(" delete"), event("delete", ref="main", ref_type="branch"))


def test_create_and_delete_need_no_filter() -> None:
    assert matches(with_trigger(" [create, delete]"), event("create", ref="main", ref_type="branch"))


def test_a_dispatch_starts_what_names_it() -> None:
    assert matches(with_trigger(" workflow_dispatch"), event("workflow_dispatch", inputs={}))
    assert not matches(with_trigger(" push"), event("workflow_dispatch", inputs={}))


@pytest.mark.parametrize(
    ("types", "runs"), [("", True), ("{types: [deploy]}", True), ("{types: deploy}", True), ("{types: [a]}", False)]
)
def test_a_repository_dispatch_is_filtered_by_its_type(types: str, runs: bool) -> None:
    workflow = with_trigger(f" {{repository_dispatch: {types}}}")
    assert matches(workflow, event("repository_dispatch", action="deploy")) is runs


def test_a_schedule_fires_the_workflow_that_holds_the_entry() -> None:
    workflow = with_trigger(" {schedule: [{cron: '0 6 * * *'}, {cron: '0 7 * * *'}]}")
    assert matches(workflow, event("schedule", schedule="0 7 * * *"))
    assert not matches(workflow, event("schedule", schedule="0 8 * * *"))


RUN_OF_CI: dict[str, Any] = {"action": "completed", "workflow_run": {"name": "CI", "head_branch": "main"}}


@pytest.mark.parametrize(
    ("config", "runs"),
    [
        ("{workflows: [CI]}", True),
        ("{workflows: CI}", True),
        ("{workflows: [Other]}", False),
        ("{workflows: [CI], types: [completed]}", True),
        ("{workflows: [CI], types: [requested]}", False),
        ("{workflows: [CI], branches: [main]}", True),
        ("{workflows: [CI], branches: [dev]}", False),
        ("{workflows: [CI], branches-ignore: [main]}", False),
    ],
)
def test_a_workflow_run_is_filtered_by_workflow_type_and_branch(config: str, runs: bool) -> None:
    assert matches(with_trigger(f" {{workflow_run: {config}}}"), event("workflow_run", **RUN_OF_CI)) is runs


def pull_request(action: str, base: str = "main", paths: tuple[str, ...] | None = None) -> Event:
    payload = {"action": action, "pull_request": {"base": {"ref": base}}}
    return Event("pull_request", {"base_ref": base, "event": payload}, changed_paths=paths)


def test_a_pull_request_without_types_means_opened_synchronize_and_reopened() -> None:
    workflow = with_trigger(" pull_request")
    assert [matches(workflow, pull_request(action)) for action in ("opened", "synchronize", "reopened")] == [True] * 3
    assert not matches(workflow, pull_request("closed"))
    assert matches(with_trigger(" {pull_request: {types: [closed]}}"), pull_request("closed"))


def test_a_pull_request_is_filtered_by_its_base_and_paths() -> None:
    workflow = with_trigger(" {pull_request: {branches: [main], paths: ['src/**']}}")
    assert matches(workflow, pull_request("opened", paths=("src/a",)))
    assert not matches(workflow, pull_request("opened", paths=("docs/a",)))
    assert not matches(workflow, pull_request("opened", "dev", paths=("src/a",)))


def test_other_events_without_types_mean_every_activity() -> None:
    assert matches(with_trigger(" issues"), event("issues", action="pinned"))
    assert not matches(with_trigger(" {issues: {types: [opened]}}"), event("issues", action="pinned"))

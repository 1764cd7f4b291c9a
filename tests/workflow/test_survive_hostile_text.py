"""Can any text make the loader or the planner raise what it should not, or take long?"""

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ci.workflow import Event, MatrixError, PlanError, WorkflowErrors, legs, load, plan, triggers
from ci.workflow.expressions import ExpressionError

from .support import PATH

SECONDS = 10.0  # of the processor's time: others use the machine too
KEYS = st.sampled_from(
    [
        *("on", "jobs", "name", "run-name", "env", "defaults", "permissions", "concurrency", "group", "a", "b", "<<"),
        *("cancel-in-progress", "needs", "if", "runs-on", "labels", "strategy", "matrix", "include", "exclude"),
        *("fail-fast", "max-parallel", "steps", "run", "uses", "with", "secrets", "id", "shell", "timeout-minutes"),
        *("continue-on-error", "container", "services", "image", "outputs", "environment", "url", "push"),
        *("pull_request", "branches", "branches-ignore", "paths", "types", "schedule", "cron", "timezone"),
        *("workflow_dispatch", "workflow_call", "inputs", "type", "options", "default", "required"),
    ]
)
TEXTS = st.one_of(
    st.sampled_from(
        [
            "push",
            "x",
            "true",
            "~",
            "1e999",
            "-0",
            ".nan",
            "a",
            "b",
            "'*'",
            "*a",
            "&a x",
            "!!int 1",
            "!x y",
            "|",
            ">-",
            "?",
        ]
    ),
    st.sampled_from(["${{ github.ref }}", "${{", "'${{ }}'", "${{ insert }}", "always()", "${{ fromJSON('[1]') }}"]),
    st.text(max_size=12),
)
TREES: st.SearchStrategy[Any] = st.recursive(
    TEXTS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(st.tuples(st.one_of(KEYS, TEXTS), inner), max_size=6)
    ),
    max_leaves=40,
)


def flow(tree: Any) -> str:
    """The tree as YAML, mostly valid; pairs may repeat their keys, which a dict could not."""
    if isinstance(tree, str):
        return tree
    if tree and all(isinstance(item, tuple) for item in tree):
        return "{" + ", ".join(f"{key}: {flow(value)}" for key, value in tree) + "}"
    return "[" + ", ".join(flow(item) for item in tree) + "]"


def survive(text: str | bytes) -> None:
    started = time.thread_time()
    try:
        workflow = load(PATH, {PATH: text})
    except WorkflowErrors as refused:
        assert 1 <= len(refused.problems) <= 10
        assert time.thread_time() - started < SECONDS
        return
    for name in workflow.on:
        event = Event(name, {"ref": "refs/heads/main", "event_name": name, "event": {"action": "opened"}})
        triggers.matches(workflow, event)
        try:
            for job in plan(workflow, event).jobs:
                contexts = {"github": event.github, "inputs": {}, "vars": {}, "needs": {}}
                legs.expand(job.definition, contexts=contexts, ancestors={}, cancelled=False, key=job.key)
        except (PlanError, MatrixError, ExpressionError):
            pass
    assert time.thread_time() - started < SECONDS


CALM = settings(max_examples=300)


@CALM
@given(st.one_of(st.text(max_size=300), st.binary(max_size=300)))
def test_any_text_is_a_workflow_or_a_list_of_problems(text: str | bytes) -> None:
    survive(text)


@CALM
@given(st.lists(st.tuples(KEYS, TREES), max_size=5))
def test_any_tree_is_a_workflow_or_a_list_of_problems(pairs: list[tuple[str, Any]]) -> None:
    survive("\n".join(f"{key}: {flow(value)}" for key, value in pairs))


@CALM
@given(st.lists(st.tuples(KEYS, TREES), max_size=6), st.lists(st.tuples(KEYS, TREES), max_size=3))
def test_any_job_is_planned_or_refused(job: list[tuple[str, Any]], step: list[tuple[str, Any]]) -> None:
    lines = "".join(f"    {key}: {flow(value)}\n" for key, value in job)
    survive(f"on: push\njobs:\n  j:\n    runs-on: x\n{lines}    steps:\n      - {flow(step)}\n")


@CALM
@given(TREES)
def test_any_matrix_is_expanded_or_refused(matrix: Any) -> None:
    survive(f"on: push\njobs:\n  j:\n    runs-on: ${{{{ matrix.a }}}}\n    strategy:\n      matrix: {flow(matrix)}\n")


@CALM
@given(TREES)
def test_any_trigger_is_matched_or_refused(on: Any) -> None:
    survive(f"on: {flow(on)}\njobs: {{a: {{runs-on: x}}}}\n")

"""Which jobs does an event start, and in which order?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ci.workflow import needs, storable
from ci.workflow.concurrency import Concurrency, evaluate_concurrency
from ci.workflow.expressions import ExpressionError, check, render, to_string
from ci.workflow.names import cut
from ci.workflow.problems import PlanError
from ci.workflow.workflow import Definition, Event, Workflow

_RUN_CONTEXTS = frozenset({"github", "inputs", "vars"})


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job before its matrix is expanded. `name`: what to show until its legs have names of their own.
    `level`: 0 without needs, else one more than its needs."""

    key: str
    name: str
    needs: tuple[str, ...]
    level: int
    definition: Definition


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run of a workflow consists of. `run_name` is None where the workflow gives none."""

    name: str
    run_name: str | None
    env: Definition
    defaults: Definition
    concurrency: Concurrency | None
    permissions: str | Definition | None
    jobs: tuple[PlannedJob, ...]


def plan(workflow: Workflow, event: Event) -> Plan:
    """The run that `event` starts, whether or not the workflow's triggers match it. Raises PlanError."""
    contexts: dict[str, object] = {"github": event.github, "inputs": event.inputs, "vars": event.vars}
    try:
        run_name = to_string(render(workflow.run_name, contexts)).strip() if workflow.run_name else ""
        concurrency = evaluate_concurrency(workflow.concurrency, contexts)
    except ExpressionError as error:
        raise PlanError(f"{workflow.path}: the run-name or concurrency cannot be evaluated. {error}") from error
    storable.check(run_name, f"{workflow.path}: the run-name")
    return Plan(
        name=workflow.name,
        run_name=run_name or None,
        env=workflow.env,
        defaults=workflow.defaults,
        concurrency=concurrency,
        permissions=workflow.permissions,
        jobs=planned_jobs(workflow.jobs, contexts),
    )


def planned_jobs(jobs: Mapping[str, Definition], contexts: Mapping[str, object]) -> tuple[PlannedJob, ...]:
    """The jobs of one workflow file, unexpanded. `contexts`: github, inputs, vars."""
    graph = _graph(jobs)
    level = needs.levels(graph)
    planned: list[PlannedJob] = []
    for key, definition in jobs.items():
        name = _shown_name(key, definition, contexts)
        own = {**definition, "needs": graph[key]}
        planned.append(PlannedJob(key, name, tuple(graph[key]), level[key], own))
    return tuple(planned)


def _graph(jobs: Mapping[str, Definition]) -> dict[str, list[str]]:
    """The needs of every job, spelled as the jobs are."""
    spelled = {key.casefold(): key for key in jobs}
    return {
        key: list(dict.fromkeys(spelled[need.casefold()] for need in definition["needs"]))
        for key, definition in jobs.items()
    }


def _shown_name(key: str, definition: Mapping[str, Any], contexts: Mapping[str, object]) -> str:
    """The name, evaluated where that needs neither matrix nor needs, else as written."""
    name = str(definition.get("name") or "").strip()
    if "${{" in name and not check(name, contexts=_RUN_CONTEXTS, functions={}):
        try:
            name = storable.cleaned(to_string(render(name, contexts)).strip())
        except ExpressionError:
            # Its legs will meet the same error, and say so where it can be seen.
            return cut(name)
    return cut(name or key)

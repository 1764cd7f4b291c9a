"""Which jobs would an event start, before anything runs? For people who write a workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ci.workflow import calls, legs, needs
from ci.workflow.expressions import ExpressionError
from ci.workflow.matrix import MatrixError
from ci.workflow.planning import PlannedJob, plan
from ci.workflow.problems import PlanError
from ci.workflow.triggers import matches
from ci.workflow.workflow import Event, Workflow


@dataclass(frozen=True, slots=True)
class PreviewedJob:
    """A row of what would run. `outcome`: "runs", "skipped", "fails" (then `note` says why), or "later": what it
    becomes is only known when its needs have ended. `labels` and `matrix` are those of a job that runs."""

    key: str
    name: str
    needs: tuple[str, ...]
    level: int
    outcome: str
    labels: tuple[str, ...] = ()
    matrix: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Preview:
    """`triggered`: whether the workflow's `on:` matches the event at all; the jobs are shown in any case."""

    triggered: bool
    run_name: str | None
    jobs: tuple[PreviewedJob, ...]


def preview(workflow: Workflow, event: Event) -> Preview:
    """What `event` would start, taking every job to succeed with empty outputs. Raises PlanError."""
    planned = plan(workflow, event)
    contexts = {"github": event.github, "inputs": event.inputs, "vars": event.vars}
    return Preview(matches(workflow, event), planned.run_name, tuple(_scope(planned.jobs, contexts, prefix="")))


def _scope(jobs: tuple[PlannedJob, ...], contexts: Mapping[str, object], *, prefix: str) -> list[PreviewedJob]:
    rows: list[PreviewedJob] = []
    results: dict[str, str] = {}
    ancestors = needs.ancestors({job.key: job.needs for job in jobs})
    for job in sorted(jobs, key=lambda job: job.level):
        found = _job(job, contexts, {key: results[key] for key in ancestors[job.key]}, prefix)
        results[job.key] = "skipped" if all(row.outcome == "skipped" for row in found) else "success"
        rows.extend(found)
    return rows


def _job(
    job: PlannedJob, contexts: Mapping[str, object], ancestors: Mapping[str, str], prefix: str
) -> list[PreviewedJob]:
    row = PreviewedJob(job.key, prefix + job.name, job.needs, job.level, "runs")
    known = {key: {"result": ancestors[key], "outputs": {}} for key in job.needs}
    try:
        expansion = legs.expand(
            job.definition, contexts={**contexts, "needs": known}, ancestors=ancestors, cancelled=False, key=job.key
        )
    except (ExpressionError, MatrixError, PlanError) as error:
        # With needs the error may only come from the outputs that are not there yet.
        return [replace(row, outcome="later" if job.needs else "fails", note=str(error))]
    if expansion.skipped:
        note = "its condition is false if its needs end like this" if job.needs else "its condition is false"
        return [replace(row, outcome="skipped", note=note)]
    rows = []
    for leg in expansion.legs:
        rows.append(replace(row, name=prefix + leg.name, labels=leg.labels, matrix=leg.matrix))
        if leg.call is not None:
            rows.extend(_called(job, leg, contexts, prefix + leg.name))
    return rows


def _called(job: PlannedJob, leg: legs.Leg, contexts: Mapping[str, object], name: str) -> list[PreviewedJob]:
    assert leg.call is not None
    inner = {**contexts, "inputs": leg.call.inputs}
    github: Any = contexts["github"]
    variables: Any = contexts["vars"]
    planned = calls.plan_call(job.definition["called"], github=github, inputs=leg.call.inputs, vars=variables)
    return _scope(planned, inner, prefix=calls.shown_name(name, ""))

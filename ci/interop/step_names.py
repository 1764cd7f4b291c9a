"""How is a step called that runs on a runner which does not tell its name? As it is written, or after what it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.lifecycle import contexts
from ci.models import Job
from ci.workflow.expressions import ExpressionError, render, to_string
from ci.workflow.expressions.templates import OPEN


def step_names(job: Job) -> list[str]:
    """The names of a job's steps in their order; expressions stay as they are where only the runner knows a value."""
    steps = [_written(step) for step in job.definition.get("steps") or []]
    if not any(OPEN in text for text in steps):
        return steps
    known = {
        "github": contexts.github(job.run),
        "inputs": contexts.inputs(job),
        "matrix": job.matrix,
        "strategy": contexts.strategy_of(job),
        "vars": contexts.variables(job.run.repository, job.environment),
    }
    return [_rendered(text, known) for text in steps]


def _written(step: Mapping[str, Any]) -> str:
    if step.get("name"):
        return str(step["name"])
    if step.get("uses"):
        return f"Run {step['uses']}"
    first, *_ = str(step.get("run") or "").strip().split("\n")
    return f"Run {first.strip()}"


def _rendered(text: str, known: Mapping[str, Any]) -> str:
    try:
        return to_string(render(text, known)).strip() or text
    except ExpressionError:
        return text

"""Is a job that names an environment a deployment to it? Unless its `environment.deployment` is false.

GitHub docs, "Using environments without deployments": true, false or an expression; true where it is left out."""

from __future__ import annotations

from collections.abc import Mapping

from ci.workflow.expressions import render, to_string
from ci.workflow.problems import PlanError
from ci.workflow.trees import Contexts


def deploys(environment: object, contexts: Contexts) -> bool:
    """Of a job's `environment`, as its file has it. `contexts`: those of the leg (github, needs, strategy, matrix,
    inputs, vars). Raises ExpressionError, and PlanError for what is neither true nor false."""
    value = _rendered(environment, contexts)
    if not isinstance(value, Mapping):
        return _is_named(value)
    if not _is_named(_rendered(value.get("name"), contexts)):
        return False
    found = _rendered(value.get("deployment"), contexts)
    if isinstance(found, bool):
        return found
    text = to_string(found).casefold()
    if text not in {"true", "false", ""}:
        raise PlanError(f"environment.deployment must be true or false, not '{text[:100]}'")
    return text != "false"


def _is_named(name: object) -> bool:
    return bool(to_string(name).strip())


def _rendered(value: object, contexts: Contexts) -> object:
    return render(value, contexts) if isinstance(value, str) else value

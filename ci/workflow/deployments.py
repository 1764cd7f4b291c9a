"""Is a job that names an environment a deployment to it? Unless its `environment.deployment` is false.

GitHub docs, "Using environments without deployments": true, false or an expression; true where it is left out."""

from __future__ import annotations

from collections.abc import Mapping

from ci.workflow.expressions import to_string
from ci.workflow.leg_values import flag, rendered
from ci.workflow.trees import Contexts


def deploys(environment: object, contexts: Contexts) -> bool:
    """Of a job's `environment`, as its file has it. `contexts`: those of the leg (github, needs, strategy, matrix,
    inputs, vars). Raises ExpressionError, and PlanError for what is neither true nor false."""
    value = rendered(environment, contexts)
    settings = value if isinstance(value, Mapping) else {"name": value}
    if not to_string(rendered(settings.get("name"), contexts)).strip():
        return False
    said = rendered(settings.get("deployment"), contexts)
    return said is None or said == "" or flag(said, "environment.deployment")

"""Does a job run, and as which legs, now that its needs have ended?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ci.workflow import storable
from ci.workflow.calls import Call, prepare
from ci.workflow.concurrency import Concurrency, evaluate_concurrency
from ci.workflow.expressions import condition, render, to_string
from ci.workflow.matrix import Combination, MatrixError, combinations
from ci.workflow.names import cut, leg_name
from ci.workflow.problems import PlanError
from ci.workflow.trees import Contexts, render_tree
from ci.workflow.workflow import Definition

DEFAULT_TIMEOUT_MINUTES = 360.0
# 35 days, the longest a workflow run may take on GitHub.
MAX_TIMEOUT_MINUTES = 35 * 24 * 60.0
DEFAULT_CANCEL_MINUTES = 5.0
MAX_LABELS = 50
MAX_TEXT = 256


@dataclass(frozen=True, slots=True)
class Leg:
    """One job to run. `index` counts from 0 over `total` legs; `timeout_minutes` may be a fraction, as may
    `cancel_timeout_minutes`, what a cancelled job gets to end by itself;
    `environment_url` is still raw, as it may name what steps put out. A leg with a `call` runs no steps and needs no
    runner: its jobs are those of the called workflow (`calls.plan_call`)."""

    name: str
    matrix: dict[str, Any]
    index: int
    total: int
    labels: tuple[str, ...]
    fail_fast: bool
    max_parallel: int | None
    timeout_minutes: float
    continue_on_error: bool
    concurrency: Concurrency | None
    environment: str | None
    environment_url: str | None
    call: Call | None = None
    cancel_timeout_minutes: float = DEFAULT_CANCEL_MINUTES

    @property
    def strategy(self) -> dict[str, Any]:
        """The `strategy` context."""
        return strategy_context(self.index, self.total, fail_fast=self.fail_fast, max_parallel=self.max_parallel)


@dataclass(frozen=True, slots=True)
class Expansion:
    skipped: bool
    legs: tuple[Leg, ...]


def expand(
    definition: Definition, *, contexts: Contexts, ancestors: Mapping[str, str], cancelled: bool, key: str
) -> Expansion:
    """The legs of the job `key`, or that it is skipped. `contexts`: github, inputs, vars, needs. `ancestors`: the
    result of every job it waits for, directly or through others. `cancelled`: the run is being cancelled.

    The `if` is evaluated before the matrix. Raises ExpressionError, MatrixError or PlanError.
    """
    if not enabled(definition, contexts=contexts, ancestors=ancestors, cancelled=cancelled):
        return Expansion(skipped=True, legs=())
    strategy = _strategy(definition.get("strategy"), contexts)
    found = combinations(_matrix(strategy)) or [Combination({}, [])]
    fail_fast = _flag(strategy.get("fail-fast", True), "strategy.fail-fast")
    max_parallel = _max_parallel(strategy.get("max-parallel"))
    legs = []
    for index, combination in enumerate(found):
        context = strategy_context(index, len(found), fail_fast=fail_fast, max_parallel=max_parallel)
        known = {**contexts, "strategy": context, "matrix": combination.values}
        legs.append(_leg(definition, combination, index, len(found), known, fail_fast, max_parallel, key))
        _check_storable(legs[-1])
    return Expansion(skipped=False, legs=tuple(legs))


def _check_storable(leg: Leg) -> None:
    storable.check(leg.matrix, "The matrix")
    storable.check(leg.name, "The name")
    storable.check(leg.labels, "runs-on")
    storable.check(leg.environment, "The environment")
    storable.check(leg.call.inputs if leg.call else None, "An input of the called workflow")


def enabled(definition: Definition, *, contexts: Contexts, ancestors: Mapping[str, str], cancelled: bool) -> bool:
    """Whether a job runs, by its `if` (none: success()). Raises ExpressionError."""
    return condition(definition.get("if"), contexts, status_functions(ancestors, cancelled=cancelled))


def status_functions(ancestors: Mapping[str, str], *, cancelled: bool) -> dict[str, Callable[..., object]]:
    """success(), failure(), always() and cancelled() of a job's `if`: over all ancestors, or over those named."""

    def chosen(names: tuple[object, ...]) -> list[str]:
        folded = {to_string(name).casefold() for name in names}
        return [result for job, result in ancestors.items() if not names or job.casefold() in folded]

    def success(*names: object) -> bool:
        return not cancelled and all(result == "success" for result in chosen(names))

    def failure(*names: object) -> bool:
        return not cancelled and any(result == "failure" for result in chosen(names))

    return {"success": success, "failure": failure, "always": lambda: True, "cancelled": lambda: cancelled}


def strategy_context(index: int, total: int, *, fail_fast: bool, max_parallel: int | None) -> dict[str, Any]:
    """The `strategy` context of one leg; without a limit `max-parallel` is the number of legs (GitHub docs)."""
    return {
        "fail-fast": fail_fast,
        "job-index": index,
        "job-total": total,
        "max-parallel": total if max_parallel is None else max_parallel,
    }


def _leg(
    definition: Definition,
    combination: Combination,
    index: int,
    total: int,
    contexts: Contexts,
    fail_fast: bool,
    max_parallel: int | None,
    key: str,
) -> Leg:
    environment, url = _environment(definition.get("environment"), contexts)
    calls = "uses" in definition
    return Leg(
        name=_name(definition.get("name"), combination, contexts, key),
        matrix=combination.values,
        index=index,
        total=total,
        labels=() if calls else labels(definition.get("runs-on"), contexts),
        fail_fast=fail_fast,
        max_parallel=max_parallel,
        timeout_minutes=_minutes(definition, "timeout-minutes", contexts, DEFAULT_TIMEOUT_MINUTES),
        cancel_timeout_minutes=_minutes(definition, "cancel-timeout-minutes", contexts, DEFAULT_CANCEL_MINUTES),
        continue_on_error=_flag(_rendered(definition.get("continue-on-error", False), contexts), "continue-on-error"),
        concurrency=evaluate_concurrency(definition.get("concurrency"), contexts),
        environment=environment,
        environment_url=url,
        call=prepare(definition, contexts=contexts) if calls else None,
    )


def _name(raw: object, combination: Combination, contexts: Contexts, key: str) -> str:
    """A name with an expression stands for itself; any other gets the values of the matrix appended."""
    text = to_string(raw).strip()
    if "${{" in text:
        name = to_string(render(text, contexts)).strip()
        if name:
            return cut(name)
        text = ""
    return leg_name(text or key, combination.shown)


def _strategy(raw: object, contexts: Contexts) -> dict[str, Any]:
    rendered = render_tree(raw, contexts)
    if rendered is None or rendered == "":
        return {}
    if not isinstance(rendered, dict):
        raise PlanError("The strategy must be a mapping with a matrix")
    return rendered


def _matrix(strategy: Mapping[str, Any]) -> dict[str, Any] | None:
    matrix = strategy.get("matrix")
    if matrix is None:
        return None
    if not isinstance(matrix, dict):
        raise MatrixError(f"The matrix must be a mapping, but it evaluated to '{to_string(matrix)[:100]}'")
    return matrix


def _max_parallel(value: object) -> int | None:
    if value is None or value == "":
        return None
    number = _number(value, "strategy.max-parallel")
    if number < 1:
        raise PlanError(f"strategy.max-parallel must be at least 1, not {to_string(number)}")
    return int(min(number, 10_000))


def _minutes(definition: Definition, key: str, contexts: Contexts, default: float) -> float:
    value = _rendered(definition.get(key), contexts)
    if value is None or value == "":
        return default
    number = _number(value, key)
    if number <= 0:
        raise PlanError(f"{key} must be greater than 0, not {to_string(number)}")
    return min(number, MAX_TIMEOUT_MINUTES)


def _number(value: object, where: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number) and "_" not in value:
            return number
    raise PlanError(f"{where} must be a number, not '{to_string(value)[:100]}'")


def _flag(value: object, where: str) -> bool:
    if isinstance(value, bool):
        return value
    text = to_string(value).casefold()
    if text in {"true", "false", ""}:
        return text == "true"
    raise PlanError(f"{where} must be true or false, not '{text[:100]}'")


def labels(raw: object, contexts: Contexts) -> tuple[str, ...]:
    """The labels of `runs-on`: a text, a list, or a mapping with `labels`. Raises PlanError where there are none."""
    value = render_tree(raw, contexts)
    if isinstance(value, Mapping):
        if value.get("group"):
            raise PlanError("runs-on names a runner group, but this server has none. Use labels only")
        value = value.get("labels")
    listed = value if isinstance(value, list) else [value]
    if any(isinstance(label, (dict, list)) for label in listed):
        raise PlanError("runs-on must be a label or a list of labels")
    found = tuple(dict.fromkeys(to_string(label).strip() for label in listed))
    if not found or "" in found:
        raise PlanError("runs-on evaluated to an empty label. Name the labels a runner must have")
    if len(found) > MAX_LABELS or any(len(label) > MAX_TEXT for label in found):
        raise PlanError(f"runs-on takes at most {MAX_LABELS} labels of at most {MAX_TEXT} characters")
    return found


def _environment(raw: object, contexts: Contexts) -> tuple[str | None, str | None]:
    if raw is None:
        return None, None
    value = _rendered(raw, contexts)
    settings = value if isinstance(value, Mapping) else {"name": value}
    name = to_string(_rendered(settings.get("name"), contexts)).strip()
    if len(name) > MAX_TEXT:
        raise PlanError(f"The environment's name is longer than {MAX_TEXT} characters")
    url = settings.get("url")
    return name or None, to_string(url) or None


def _rendered(value: object, contexts: Contexts) -> object:
    return render(value, contexts) if isinstance(value, str) else value

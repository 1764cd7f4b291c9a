"""Does a job run, and as which legs, now that its needs have ended?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ci.workflow import storable
from ci.workflow.calls import Call, prepare
from ci.workflow.concurrency import Concurrency, evaluate_concurrency
from ci.workflow.deployments import deploys
from ci.workflow.expressions import asks_status, condition, renderer, to_string
from ci.workflow.leg_values import environment_name, environment_url, flag, labels, number, rendered
from ci.workflow.matrix import Combination, MatrixError, combinations
from ci.workflow.names import cut, leg_name
from ci.workflow.problems import PlanError
from ci.workflow.trees import Contexts, names_any, render_tree
from ci.workflow.workflow import Definition

DEFAULT_TIMEOUT_MINUTES = 360.0
# 35 days, the longest a workflow run may take on GitHub. A timeout of 0 is no limit but this one, as actions/runner
# limits no step that says 0.
MAX_TIMEOUT_MINUTES = 35 * 24 * 60.0
DEFAULT_CANCEL_MINUTES = 5.0
# What 0 stands for: actions/runner leaves a cancelled job at least 60 seconds (JobDispatcher).
LEAST_CANCEL_MINUTES = 1.0
# What the legs of a job differ in: a value that names neither is evaluated once for all of them.
_DIFFERENT = frozenset({"strategy", "matrix"})


@dataclass(slots=True)
class Leg:
    """One job to run; nobody changes it (a frozen one would take five times as long to make). `index` counts from 0
    over `total` legs; `timeout_minutes` may be a fraction, as may `cancel_timeout_minutes`, what a cancelled job gets
    to end by itself;
    `deploys`: whether it is a deployment to its environment;
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
    deploys: bool = False

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
    matrix = _matrix(strategy)
    storable.check(matrix, "The matrix")
    found = combinations(matrix) or [Combination({}, [])]
    fail_fast = flag(strategy.get("fail-fast", True), "strategy.fail-fast")
    max_parallel = _max_parallel(strategy.get("max-parallel"))
    place = strategy_context(0, len(found), fail_fast=fail_fast, max_parallel=max_parallel)
    known = {**contexts, "strategy": place, "matrix": found[0].values}
    name = _namer(definition.get("name"), key, known)
    shared, own = _share(definition, known)
    shared |= {"total": len(found), "fail_fast": fail_fast, "max_parallel": max_parallel}
    values: list[Any] = [shared.get(field) for field in _ORDER]
    legs = []
    for index, combination in enumerate(found):
        place["job-index"] = index
        known["matrix"] = combination.values
        for position, evaluate in own:
            values[position] = evaluate(definition, known)
        legs.append(Leg(name(combination), combination.values, index, *values))
    storable.check("\n".join([leg.name for leg in legs]), "The name")
    return Expansion(skipped=False, legs=tuple(legs))


def asks_for_status(definition: Definition) -> bool:
    """Whether the job's `if` calls a status function itself: any other one is false in a run that was cancelled."""
    return asks_status(definition.get("if"))


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


def _call(definition: Definition, contexts: Contexts) -> Call | None:
    if "uses" not in definition:
        return None
    call = prepare(definition, contexts=contexts)
    storable.check(call.inputs, "An input of the called workflow")
    return call


def _minutes(key: str, default: float, *, zero: float) -> Callable[[Definition, Contexts], float]:
    def evaluate(definition: Definition, contexts: Contexts) -> float:
        value = rendered(definition.get(key), contexts)
        if value is None or value == "":
            return default
        found = number(value, key)
        if found < 0:
            raise PlanError(f"{key} must not be negative, but it is {to_string(found)}")
        return min(found, MAX_TIMEOUT_MINUTES) if found else zero

    return evaluate


_Evaluate = Callable[[Definition, Contexts], Any]
# The fields of a leg that come from one key of the job, and how.
_FIELDS: tuple[tuple[str, str, _Evaluate], ...] = (
    ("call", "with", _call),
    ("labels", "runs-on", lambda job, known: () if "uses" in job else labels(job.get("runs-on"), known)),
    (
        "timeout_minutes",
        "timeout-minutes",
        _minutes("timeout-minutes", DEFAULT_TIMEOUT_MINUTES, zero=MAX_TIMEOUT_MINUTES),
    ),
    (
        "cancel_timeout_minutes",
        "cancel-timeout-minutes",
        _minutes("cancel-timeout-minutes", DEFAULT_CANCEL_MINUTES, zero=LEAST_CANCEL_MINUTES),
    ),
    (
        "continue_on_error",
        "continue-on-error",
        lambda job, known: flag(rendered(job.get("continue-on-error", False), known), "continue-on-error"),
    ),
    ("concurrency", "concurrency", lambda job, known: evaluate_concurrency(job.get("concurrency"), known)),
    ("environment", "environment", lambda job, known: environment_name(job.get("environment"), known)),
    ("environment_url", "environment", lambda job, known: environment_url(job.get("environment"), known)),
    ("deploys", "environment", lambda job, known: deploys(job.get("environment"), known)),
)


# Given by position: that is four times as fast as by name.
_ORDER = [field.name for field in fields(Leg)[3:]]


def _share(definition: Definition, contexts: Contexts) -> tuple[dict[str, Any], list[tuple[int, _Evaluate]]]:
    """The fields that are the same for all legs, and the evaluation of the others by their position in _ORDER."""
    shared, own = {}, []
    for field, key, evaluate in _FIELDS:
        if names_any(definition.get(key), _DIFFERENT):
            own.append((_ORDER.index(field), evaluate))
        else:
            shared[field] = evaluate(definition, contexts)
    return shared, own


def _namer(raw: object, key: str, contexts: Contexts) -> Callable[[Combination], str]:
    """What names a leg. A name with an expression stands for itself; any other gets the values of the matrix."""
    text = to_string(raw).strip()
    if "${{" not in text:
        return lambda combination: leg_name(text or key, combination.shown)
    render = renderer(text, contexts)

    def name(combination: Combination) -> str:
        found = to_string(render()).strip()
        return cut(found) if found else leg_name(key, combination.shown)

    return name


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
    found = number(value, "strategy.max-parallel")
    if found < 1:
        raise PlanError(f"strategy.max-parallel must be at least 1, not {to_string(found)}")
    return int(min(found, 10_000))

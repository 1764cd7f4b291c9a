"""What does a job give to the workflow it calls, and what does it get back?

GitHub docs, "Reusing workflow configurations"; values are typed as in actions/runner's WorkflowTemplateConverter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ci.workflow import storable
from ci.workflow.concurrency import Concurrency, evaluate_concurrency
from ci.workflow.expressions import render, to_string
from ci.workflow.planning import PlannedJob, planned_jobs
from ci.workflow.problems import PlanError
from ci.workflow.trees import Contexts, render_texts
from ci.workflow.workflow import Definition

MAX_SHOWN = 500
_EMPTY: dict[str, object] = {"boolean": False, "number": 0, "string": ""}
# What expressions in the declarations and outputs of a called workflow may name.
_DECLARATION = ("github", "inputs", "vars")


@dataclass(frozen=True, slots=True)
class Call:
    """What one leg of a call job gives to the called workflow. `inputs`: its `inputs` context, typed. `secrets`:
    "inherit", or the secrets by name with their `${{ }}` still in them, for `call_secrets`."""

    inputs: dict[str, Any]
    secrets: Literal["inherit"] | dict[str, str]


def prepare(definition: Definition, *, contexts: Contexts) -> Call:
    """The call of a job with `uses`. `contexts`: github, inputs, vars, needs, strategy, matrix of the leg.

    Raises ExpressionError; PlanError where an input has not the declared type, or the called workflow is not known.
    """
    called = definition.get("called")
    if called is None:
        raise PlanError(f"The workflow '{definition.get('uses')}' was not found. Check its path and its repository")
    given = {name.casefold(): value for name, value in (definition.get("with") or {}).items()}
    inputs = {
        name: _input(name, declared, given.get(name.casefold()), contexts, given=name.casefold() in given)
        for name, declared in called["inputs"].items()
    }
    secrets = definition.get("secrets") or {}
    return Call(inputs, "inherit" if secrets == "inherit" else {name: to_string(raw) for name, raw in secrets.items()})


def _input(name: str, declared: Definition, raw: object, contexts: Contexts, *, given: bool) -> object:
    kind = str(declared["type"])
    if given:
        return _typed(name, kind, render(raw, contexts) if isinstance(raw, str) else raw)
    default = declared.get("default")
    if default is None:
        return _EMPTY[kind]
    known = {context: contexts[context] for context in _DECLARATION if context in contexts}
    return _typed(name, kind, render(default, known) if isinstance(default, str) else default)


def _typed(name: str, kind: str, value: object) -> object:
    """The value, which must have its type: only a string takes any other scalar, as its text."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if (kind == "boolean" and isinstance(value, bool)) or (kind == "number" and number):
        return value
    if kind == "string" and not isinstance(value, (dict, list)):
        return to_string(value)
    shown = to_string(value)[:100]
    raise PlanError(f"The input {name} of the called workflow is a {kind}, but it is given '{shown}'")


def call_secrets(raw: Mapping[str, str], contexts: Contexts) -> dict[str, str]:
    """The `secrets` of a call, evaluated; empty ones are left out. `contexts`: those of the leg, with `secrets`.

    Raises ExpressionError.
    """
    return {name: value for name, value in render_texts(dict(raw), contexts).items() if value}


def plan_call(
    called: Definition, *, github: Mapping[str, Any], inputs: Mapping[str, Any], vars: Mapping[str, Any]
) -> tuple[PlannedJob, ...]:
    """The jobs of a called workflow, unexpanded, with their levels among one another; `shown_name` makes their names
    whole. `github` is the caller's, `inputs` are those of the Call."""
    return planned_jobs(called["jobs"], {"github": github, "inputs": inputs, "vars": vars})


def shown_name(caller: str, callee: str) -> str:
    """The name of a job in a called workflow as GitHub shows it, below the name of the leg that calls; at most 500
    characters, which ten levels of long names could exceed."""
    name = f"{caller} / {callee}"
    return name if len(name) <= MAX_SHOWN else name[: MAX_SHOWN - 3] + "..."


def concurrency(called: Definition, *, contexts: Contexts) -> Concurrency | None:
    """The concurrency of a called workflow itself. `contexts`: github, inputs, vars.

    Raises ExpressionError and PlanError.
    """
    return evaluate_concurrency(called["concurrency"], contexts)


def outputs(called: Definition, *, contexts: Contexts) -> dict[str, str]:
    """The `on.workflow_call.outputs` of a called workflow that has ended.

    `contexts`: github, inputs, vars and jobs (job key -> {result, outputs}). Raises ExpressionError and PlanError.
    """
    raw = {name: declared["value"] for name, declared in called["outputs"].items()}
    found = render_texts(raw, contexts)
    storable.check(found, "An output of the called workflow")
    return found

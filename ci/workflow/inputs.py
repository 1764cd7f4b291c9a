"""Which typed values does a workflow_dispatch, or a workflow_call planned alone, get from what was given?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ci.workflow.expressions import to_string
from ci.workflow.storable import UNSTORABLE
from ci.workflow.workflow import Definition, Workflow

MAX_INPUTS = 25
MAX_PAYLOAD = 65_535
_EMPTY: dict[str, object] = {"boolean": False, "number": 0}


class InputErrors(ValueError):
    """The given inputs do not fit; `errors`: input name -> what to write. The name '' stands for all of them."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {message}" if name else message for name, message in errors.items()))
        self.errors = dict(errors)


def dispatch_inputs(workflow: Workflow, given: Mapping[str, object]) -> dict[str, Any]:
    """The `inputs` context of a workflow_dispatch: booleans are bool, numbers int or float, the rest str. Names compare
    without case. Raises InputErrors for unknown, missing, ill-typed or (65,535 characters in all) too long values."""
    return _inputs(workflow.dispatch_inputs, given)


def call_inputs(
    workflow: Workflow, given: Mapping[str, object], evaluate: Callable[[object], object]
) -> dict[str, Any]:
    """As `dispatch_inputs`, of a workflow_call: what a caller would hand in. `evaluate` is given each default, which
    may be an expression there."""
    declared = (workflow.on.get("workflow_call") or {}).get("inputs") or {}
    known = {
        name: {
            "type": definition["type"],
            "required": definition.get("required", False),
            "default": evaluate(definition.get("default")),
            "options": [],
        }
        for name, definition in declared.items()
    }
    return _inputs(known, given)


def _inputs(declared: Mapping[str, Definition], given: Mapping[str, object]) -> dict[str, Any]:
    wanted = {name.casefold(): name for name in declared}
    values: dict[str, object] = {}
    errors: dict[str, str] = {}
    for name, value in given.items():
        known = wanted.get(str(name).casefold())
        if known is None:
            errors[str(name)[:100]] = "Unexpected input: the workflow does not define it"
        else:
            values[known] = value
    if sum(len(to_string(value)) for value in values.values()) > MAX_PAYLOAD:
        raise InputErrors({"": f"The inputs are too long: at most {MAX_PAYLOAD} characters in all"})
    result: dict[str, Any] = {}
    for name, definition in declared.items():
        try:
            result[name] = _value(definition, values.get(name))
        except ValueError as error:
            errors[name] = str(error)
    if errors:
        raise InputErrors(errors)
    return result


def _value(definition: Mapping[str, Any], given: object) -> object:
    kind = str(definition["type"])
    missing = given is None or given == ""
    if missing:
        default = definition["default"]
        if default is None or default == "":
            if definition["required"]:
                raise ValueError("A value is required")
            return _EMPTY.get(kind, "")
        given = default
    return typed(kind, given, options=definition["options"])


def typed(kind: str, given: object, *, options: list[str] | None = None) -> object:
    """A value as its input type (string, boolean, number, choice, environment). Raises ValueError saying what fits."""
    if given is not None and not isinstance(given, (str, bool, int, float)):
        raise ValueError("Give a text, a number or a boolean")
    text = to_string(given)
    if UNSTORABLE.search(text):
        raise ValueError("Give a text without NUL characters and halves of surrogate pairs")
    if kind == "boolean":
        if text.strip().casefold() not in {"true", "false"}:
            raise ValueError("Write true or false")
        return text.strip().casefold() == "true"
    if kind == "number":
        return _number(text)
    if kind == "choice" and text not in (options or []):
        raise ValueError(f"Choose one of: {', '.join(options or [])}"[:500])
    return text


def _number(text: str) -> int | float:
    try:
        number = float(text) if "_" not in text else float("nan")
    except ValueError:
        number = float("nan")
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError("Write a number, such as 3 or 0.5")
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number


def payload(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The same inputs as `github.event.inputs` holds them: all as text."""
    return {name: to_string(value) for name, value in inputs.items()}

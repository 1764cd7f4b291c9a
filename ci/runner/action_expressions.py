"""May the expressions of an action's file stand where they do?

The places are those of actions/runner's action_yaml.json: a composite action sees neither secrets, vars nor needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ci.runner.payload import mapping
from ci.workflow.expressions import check

_ANY = frozenset({"github", "strategy", "matrix", "job", "runner"})
_STEP = _ANY | {"inputs", "steps", "env"}
_HASH = {"hashFiles": (1, 255)}
_STATUS = {"always": (0, 0), "failure": (0, 0), "cancelled": (0, 0), "success": (0, 0)}
# Keys of a step, each with what a text below it may be: a condition, or a text with expressions in it.
_KEYS = ("name", "run", "env", "with", "continue-on-error", "working-directory", "shell")


def problems(
    inputs: Mapping[str, Mapping[str, Any]], outputs: Mapping[str, Mapping[str, Any]], steps: list[dict[str, Any]]
) -> Iterator[str]:
    """What is wrong with the defaults of an action's inputs, and with steps and outputs of a composite one; each text
    says where."""
    for name, item in inputs.items():
        yield from _texts(item.get("default"), f"The default of its input {name}", _ANY)
    for number, step in enumerate(steps, 1):
        for key in _KEYS:
            yield from _texts(step.get(key), f"Step {number}, {key}", _STEP)
        yield from _condition(step.get("if"), f"Step {number}, if")
    for name, item in outputs.items():
        yield from _check(item.get("value"), f"Its output {name}", _STEP, {})


def _texts(value: object, where: str, contexts: frozenset[str]) -> Iterator[str]:
    """A text, or a mapping of texts."""
    if isinstance(value, str):
        yield from _check(value, where, contexts, _HASH)
    for name, item in mapping(value).items():
        yield from _check(name, f"{where}.{name[:100]}", contexts, _HASH)
        yield from _check(item, f"{where}.{name[:100]}", contexts, _HASH)


def _check(
    value: object, where: str, contexts: frozenset[str], functions: Mapping[str, tuple[int, int]]
) -> Iterator[str]:
    if isinstance(value, str) and value.strip() != "${{ insert }}":
        for message, _ in check(value, contexts=contexts, functions=functions):
            yield _explained(where, message, contexts)


def _condition(value: object, where: str) -> Iterator[str]:
    if isinstance(value, str):
        for message, _ in check(value, contexts=_STEP, functions={**_STATUS, **_HASH}, is_condition=True):
            yield _explained(where, message, _STEP)


def _explained(where: str, message: str, contexts: frozenset[str]) -> str:
    if not message.startswith("Unrecognized named-value"):
        return f"{where}: {message}"
    return f"{where}: {message} It may name {', '.join(sorted(contexts))} here. Hand anything else in as an input."

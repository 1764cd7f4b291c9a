"""How does a built-in action read its inputs, and how does it tell the runner what it did?

Source of names and texts: @actions/core, whose words people look for in logs."""

from __future__ import annotations

import os
import re
import threading
import uuid
from dataclasses import dataclass

from ci.runner.environment import input_variable

_LOCK = threading.Lock()
_YES, _NO = ("true", "True", "TRUE"), ("false", "False", "FALSE")


@dataclass(frozen=True)
class Call:
    """What is to be run: `main` or `post`, of which major of the action."""

    stage: str
    major: int


class Failure(Exception):
    """The action fails; the text is for the step's log."""


def variable(name: str) -> str:
    """An environment variable that the action cannot do without. Raises Failure."""
    value = os.environ.get(name, "")
    if not value:
        raise Failure(f"Unable to get the {name} env variable")
    return value


def text(name: str, *, required: bool = False) -> str:
    """An input. Raises Failure where a required one is empty."""
    value = os.environ.get(input_variable(name), "").strip()
    if required and not value:
        raise Failure(f"Input required and not supplied: {name}")
    return value


def flag(name: str) -> bool:
    """An input that is true or false; false where this major of the action does not know it. Raises Failure."""
    value = text(name)
    if value in _YES:
        return True
    if value in _NO or input_variable(name) not in os.environ:
        return False
    raise Failure(
        f'Input does not meet YAML 1.2 "Core Schema" specification: {name}\n'
        "Support boolean input list: `true | True | TRUE | false | False | FALSE`"
    )


def lines(name: str, *, required: bool = False) -> list[str]:
    """An input of one value a line. Raises Failure."""
    found = (re.sub(r"^!\s+", "!", line).strip() for line in text(name, required=required).split("\n"))
    return [line for line in found if line]


def info(message: str) -> None:
    with _LOCK:
        print(message, flush=True)


def debug(message: str) -> None:
    _command("debug", message)


def warning(message: str) -> None:
    _command("warning", message)


def error(message: str) -> None:
    _command("error", message)


def mask(value: str) -> None:
    """Hide the value in all logs from now on."""
    if value.strip():
        _command("add-mask", value)


def _command(name: str, message: str) -> None:
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    info(f"::{name}::{escaped}")


def set_output(name: str, value: object) -> None:
    _append("GITHUB_OUTPUT", name, str(value))


def save_state(name: str, value: str) -> None:
    """What the action's post stage gets back by `state`."""
    _append("GITHUB_STATE", name, value)


def state(name: str) -> str:
    return os.environ.get(f"STATE_{name}", "")


def _append(file: str, name: str, value: str) -> None:
    delimiter = f"ghadelimiter_{uuid.uuid4()}"
    with open(variable(file), "a", encoding="utf-8", errors="replace") as stream:
        stream.write(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")

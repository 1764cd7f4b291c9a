"""What does a line of a step's output ask the runner to do?

Source of the syntax: GitHub docs, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

LEVELS = ("error", "warning", "notice")
NAMES = frozenset(
    {
        *LEVELS, "debug", "group", "endgroup", "add-mask", "stop-commands", "echo", "set-output", "save-state",
        "set-env", "add-path", "add-matcher", "remove-matcher", "command", "section",
    }
)  # fmt: skip

_COMMAND = re.compile(r"\s*::(?P<name>[A-Za-z-]+)(?:\s+(?P<properties>.*?))?::(?P<data>.*)", re.DOTALL)
_MARKER = re.compile(r"\s*##\[(?P<name>[A-Za-z-]+)(?:\s+(?P<properties>[^\]]*))?\](?P<data>.*)", re.DOTALL)

MESSAGE_LIMIT = 16 * 1024
TITLE_LIMIT = 255


@dataclass(frozen=True)
class Command:
    name: str
    properties: dict[str, str]
    data: str
    marker: bool = False  # written as ##[name] instead of ::name::


def _unescape(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, character)
    return text


def _unescape_property(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def parse(line: str) -> Command | None:
    """The command of a line, whether known or not; None for ordinary output."""
    match = _COMMAND.match(line) if "::" in line else None
    marker = match is None
    if match is None and "##[" in line[:40]:
        match = _MARKER.match(line)
    if match is None:
        return None
    properties: dict[str, str] = {}
    for part in re.split(r"[;,]" if marker else ",", match["properties"] or ""):
        key, equals, value = part.partition("=")
        if equals and value:
            properties[key.strip().lower()] = _unescape_property(value)
    return Command(match["name"].lower(), properties, _unescape(match["data"].rstrip("\r")), marker=marker)


class Step(Protocol):
    """What commands act upon."""

    debug: bool

    def print(self, text: str) -> None: ...
    def annotate(self, annotation: dict[str, Any]) -> None: ...
    def mask(self, value: str) -> None: ...
    def set_output(self, name: str, value: str) -> None: ...
    def save_state(self, name: str, value: str) -> None: ...
    def fail(self, message: str) -> None: ...


class Interpreter:
    """Reads one step's output line by line, carries out its commands and prints the rest."""

    def __init__(self, step: Step, *, workspace: str) -> None:
        self._step = step
        self._workspace = workspace.rstrip("/") + "/"
        self._resume: str | None = None
        self._echo = step.debug
        self._warned: set[str] = set()

    def line(self, text: str) -> None:
        if self._resume is not None:
            if text.strip() == f"::{self._resume}::":
                self._resume = None
            self._step.print(text)
            return
        command = parse(text)
        if command is None or command.name not in NAMES:
            self._step.print(text)
            return
        self._obey(command, text)

    def _obey(self, command: Command, text: str) -> None:
        name, data = command.name, command.data
        if name in LEVELS:
            self._message(command)
        elif name == "debug":
            if self._step.debug:
                self._print_lines(f"##[debug]{data}")
        elif name in ("group", "command", "section"):
            self._step.print(f"##[{name}]{data}".replace("\n", " "))
        elif name == "endgroup":
            self._step.print("##[endgroup]")
        elif name == "add-mask":
            self._add_mask(data)
        elif name == "stop-commands":
            self._stop(data, text)
        elif name == "echo":
            self._set_echo(data)
        elif name in ("set-output", "save-state"):
            self._legacy(command)
        elif name in ("set-env", "add-path"):
            file = "GITHUB_ENV" if name == "set-env" else "GITHUB_PATH"
            self._step.fail(f"The `{name}` command is disabled. Please write to ${file} instead.")
        if self._echo and name not in (*LEVELS, "debug", "group", "endgroup", "command", "section", "stop-commands"):
            self._step.print(text)

    def _print_lines(self, text: str) -> None:
        for line in text.split("\n"):
            self._step.print(line)

    def _message(self, command: Command) -> None:
        self._print_lines(f"##[{command.name}]{command.data}")
        given = command.properties
        annotation: dict[str, Any] = {"level": command.name, "message": command.data[:MESSAGE_LIMIT]}
        if title := given.get("title"):
            annotation["title"] = title[:TITLE_LIMIT]
        if path := given.get("file"):
            annotation["path"] = path.removeprefix(self._workspace).removeprefix("./")[:1024]
        numbers = {"line": "line", "endline": "end_line", "col": "column", "endcolumn": "end_column"}
        for key, field in numbers.items():
            value = given.get(key, "")
            if value.isascii() and value.isdigit() and 0 < len(value) < 9:
                annotation[field] = int(value)
        self._step.annotate(annotation)

    def _add_mask(self, value: str) -> None:
        if value.strip():
            self._step.mask(value)
        else:
            self._step.print("##[warning]Can't add secret mask for empty string in ##[add-mask] command.")

    def _stop(self, token: str, text: str) -> None:
        if not token.strip() or token.lower() in NAMES or token.lower() == "pause-logging":
            self._step.fail(
                f"Invalid token of stop-commands: '{token[:100]}'. Use a random text that is no command's name."
            )
            return
        self._resume = token.strip()
        self._step.print(text)

    def _set_echo(self, data: str) -> None:
        switch = data.strip().lower()
        if switch in ("on", "off"):
            self._echo = switch == "on"
        else:
            self._step.fail(
                f"Invalid echo command value. Possible values can be: 'on', 'off'. Current value is: '{data[:100]}'"
            )

    def _legacy(self, command: Command) -> None:
        name = command.properties.get("name", "")
        if not name:
            self._step.fail(f"Required field 'name' is missing in ##[{command.name}] command.")
            return
        if command.name not in self._warned:
            self._warned.add(command.name)
            file = "GITHUB_OUTPUT" if command.name == "set-output" else "GITHUB_STATE"
            self._message(
                Command("warning", {}, f"The `{command.name}` command is deprecated. Please write to ${file} instead.")
            )
        store = self._step.set_output if command.name == "set-output" else self._step.save_state
        store(name, command.data)

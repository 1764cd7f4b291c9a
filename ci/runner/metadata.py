"""What does an action's action.yml say?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ci.runner.action_expressions import problems
from ci.runner.payload import mapping

FILES = ("action.yml", "action.yaml")
SIZE_LIMIT = 1024 * 1024
MOST_STEPS = 1000
NODE = re.compile(r"node(\d+)")


class MetadataError(Exception):
    """An action cannot be used; the text is for the log."""


class _Loader(yaml.SafeLoader):
    """YAML 1.2's plain scalars: yes, no, on, off and dates are texts, as GitHub reads them."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


@dataclass(frozen=True)
class Action:
    """One action, its files on disk."""

    label: str
    folder: Path
    name: str
    inputs: dict[str, dict[str, Any]]
    outputs: dict[str, dict[str, Any]]
    runs: dict[str, Any]
    repository: str = ""
    ref: str = ""

    @property
    def using(self) -> str:
        return str(self.runs.get("using") or "").lower()

    @property
    def is_composite(self) -> bool:
        return self.using == "composite"

    @property
    def node(self) -> int | None:
        """The major version of Node the action asks for; None for other kinds."""
        match = NODE.fullmatch(self.using)
        return int(match[1]) if match else None

    @property
    def steps(self) -> list[dict[str, Any]]:
        """A composite action's steps, each with an id as in a job."""
        return with_ids([mapping(step) for step in self.runs.get("steps") or []])


def with_ids(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give steps without id a generated one (`__run`, `__actions_checkout`, `__run_2`)."""
    taken = {str(step.get("id")) for step in steps if step.get("id")}
    named: list[dict[str, Any]] = []
    for step in steps:
        if not step.get("id"):
            uses = str(step.get("uses") or "")
            base = "self" if uses.startswith((".", "$")) else "/".join(uses.split("@")[0].split("/")[:2]) or "run"
            base = "__" + re.sub(r"[^A-Za-z0-9_-]", "_", base)[:90]
            name, count = base, 1
            while name in taken:
                count += 1
                name = f"{base}_{count}"
            taken.add(name)
            step = {**step, "id": name}
        named.append(step)
    return named


def load(folder: Path, *, label: str, repository: str = "", ref: str = "") -> Action:
    """Read the action in a folder. Raises MetadataError."""
    file = next((folder / name for name in FILES if (folder / name).is_file()), None)
    if file is None:
        if (folder / "Dockerfile").is_file():
            raise MetadataError(
                f"'{label}' is a container action (a Dockerfile), which this runner does not support yet"
            )
        raise MetadataError(f"Can't find 'action.yml', 'action.yaml' or 'Dockerfile' under '{folder}'")
    body = _parse(file)
    runs = mapping(body.get("runs"))
    action = Action(
        label=label,
        folder=folder,
        name=str(body.get("name") or label),
        inputs={name: mapping(item) for name, item in mapping(body.get("inputs")).items()},
        outputs={name: mapping(item) for name, item in mapping(body.get("outputs")).items()},
        runs=runs,
        repository=repository,
        ref=ref,
    )
    _check(action, file)
    for problem in problems(action.inputs, action.outputs, action.steps if action.is_composite else []):
        raise MetadataError(f"'{file}' cannot be used. {problem}")
    return action


def _parse(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            raw = stream.read(SIZE_LIMIT + 1)
        if len(raw) > SIZE_LIMIT:
            raise MetadataError(f"'{file}' is larger than {SIZE_LIMIT // 1024} KiB")
        body = yaml.load(raw.decode("utf-8-sig"), Loader=_Loader)  # noqa: S506 (a SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise MetadataError(f"'{file}' cannot be read: {reason}") from error
    if not isinstance(body, dict):
        raise MetadataError(f"'{file}' must be a mapping with the key 'runs'")
    return mapping(body)


def _check(action: Action, file: Path) -> None:
    if not action.using:
        raise MetadataError(f"'{file}' has no 'runs.using'")
    if action.using == "docker":
        raise MetadataError(f"'{action.label}' is a container action, which this runner does not support yet")
    if action.is_composite:
        steps = action.runs.get("steps")
        if not isinstance(steps, list) or len(steps) > MOST_STEPS:
            raise MetadataError(f"'{file}' must have a list 'runs.steps' of at most {MOST_STEPS} steps")
        for number, step in enumerate(steps, 1):
            given = mapping(step)
            if ("run" in given) == ("uses" in given):
                raise MetadataError(f"Step {number} of '{file}' must have either 'run' or 'uses'")
    elif action.node is None:
        raise MetadataError(
            f"'{file}': 'using: {action.using[:100]}' is not supported, use one of: composite, node20, node24"
        )
    elif not isinstance(action.runs.get("main"), str):
        raise MetadataError(f"'{file}' has no 'runs.main'")

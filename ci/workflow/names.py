"""How are steps and the legs of a matrix named when nobody named them?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ci.workflow.expressions import to_string

MAX_ID = 100
MAX_JOB_NAME = 100
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
_OTHER_STEPS = ("wait-all", "wait", "cancel", "parallel")


def id_problem(identifier: str) -> str | None:
    """What is wrong with the id of a job or step, in GitHub's words; None when nothing is."""
    if not _ID.fullmatch(identifier) or len(identifier) >= MAX_ID:
        return (
            f"The identifier '{identifier}' is invalid. IDs may only contain alphanumeric characters, '_', and '-'. "
            "IDs must start with a letter or '_' and and must be less than 100 characters."
        )
    if identifier.startswith("__"):
        return f"The identifier '{identifier}' is invalid. IDs starting with '__' are reserved."
    return None


def step_ids(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    """The id of every step of a job: its own, else `__` and what it does (`__run`, `__actions_checkout`, `__run_2`).
    Generated ones come after all explicit ones are known (GitHub's IdBuilder)."""
    listed = list(steps)
    taken = {str(step["id"]).casefold() for step in listed if step.get("id")}
    repeats: dict[str, int] = {}
    ids: list[str] = []
    for step in listed:
        if step.get("id"):
            ids.append(str(step["id"]))
            continue
        base = "__" + _NOT_IN_IDS.sub("_", _base(step))
        ids.append(_unique(base, taken, repeats))
    return ids


def _unique(base: str, taken: set[str], repeats: dict[str, int]) -> str:
    # Counting on from the last number used keeps a file of many equal steps linear.
    number = repeats.get(base, 0)
    while True:
        number += 1
        suffix = f"_{number}" if number > 1 else ""
        candidate = base[: MAX_ID - len(suffix)] + suffix
        if candidate.casefold() not in taken:
            taken.add(candidate.casefold())
            repeats[base] = number
            return candidate


def _base(step: Mapping[str, Any]) -> str:
    uses = step.get("uses")
    if not isinstance(uses, str):
        return next((key for key in _OTHER_STEPS if key in step), "run")
    if uses.startswith("docker://"):
        return uses.removeprefix("docker://") or "run"
    if uses.startswith(("./", "$/", ".\\")):
        return "self"
    name, _, version = uses.partition("@")
    parts = name.replace("\\", "/").split("/")
    if len(parts) < 2 or not version or not all(parts[:2]):
        return "run"
    return f"{parts[0]}/{parts[1]}"


def leg_name(job_name: str, shown: Iterable[object]) -> str:
    """`job (a, b)` from the scalars in `shown`, nested ones too, empty ones left out; at most 100 characters."""
    segments = [text for value in shown for text in _segments(value)]
    name = f"{job_name} ({', '.join(segments)})" if segments else job_name
    return cut(name)


def cut(name: str) -> str:
    """A job's display name, cut as GitHub does: to 97 characters and `...` where it is longer than 100."""
    return name if len(name) <= MAX_JOB_NAME else name[: MAX_JOB_NAME - 3] + "..."


def _segments(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _segments(item)]
    if isinstance(value, list):
        return [text for item in value for text in _segments(item)]
    text = to_string(value)
    return [text] if text else []

"""How is a step called that runs on a runner which does not tell its name? As it is written, or after what it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def step_names(definition: Mapping[str, Any]) -> list[str]:
    """The names of a job's steps in their order, expressions left as they are."""
    return [_name(step) for step in definition.get("steps") or []]


def _name(step: Mapping[str, Any]) -> str:
    if step.get("name"):
        return str(step["name"])
    if step.get("uses"):
        return f"Run {step['uses']}"
    first, *_ = str(step.get("run") or "").strip().split("\n")
    return f"Run {first.strip()}"

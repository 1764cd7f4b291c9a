"""What are the values of a job's keys, once its expressions are evaluated?"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ci.workflow import storable
from ci.workflow.expressions import render, to_string
from ci.workflow.problems import PlanError
from ci.workflow.trees import Contexts, render_tree

MAX_LABELS = 50
MAX_TEXT = 256


def labels(raw: object, contexts: Contexts) -> tuple[str, ...]:
    """The labels of `runs-on`: a text, a list, or a mapping with `labels`. Raises ExpressionError, and PlanError where
    there are none."""
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
    storable.check(found, "runs-on")
    return found


def environment_name(raw: object, contexts: Contexts) -> str | None:
    """Raises ExpressionError, and PlanError for a name that is too long or cannot be kept."""
    name = to_string(rendered(_environment(raw, contexts).get("name"), contexts)).strip()
    if len(name) > MAX_TEXT:
        raise PlanError(f"The environment's name is longer than {MAX_TEXT} characters")
    storable.check(name, "The environment")
    return name or None


def environment_url(raw: object, contexts: Contexts) -> str | None:
    """The url, still raw as it may name what steps put out. Raises ExpressionError."""
    return to_string(_environment(raw, contexts).get("url")) or None


def _environment(raw: object, contexts: Contexts) -> Mapping[str, object]:
    value = rendered(raw, contexts)
    return value if isinstance(value, Mapping) else {"name": value}


def number(value: object, where: str) -> float:
    """A number, or the text of one. Raises PlanError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if math.isfinite(found) and "_" not in value:
            return found
    raise PlanError(f"{where} must be a number, not '{to_string(value)[:100]}'")


def flag(value: object, where: str) -> bool:
    """true or false, or the text of one; nothing is false. Raises PlanError."""
    if isinstance(value, bool):
        return value
    text = to_string(value).casefold()
    if text in {"true", "false", ""}:
        return text == "true"
    raise PlanError(f"{where} must be true or false, not '{text[:100]}'")


def rendered(value: object, contexts: Contexts) -> object:
    """A value, evaluated where it is a text. Raises ExpressionError."""
    return render(value, contexts) if isinstance(value, str) else value

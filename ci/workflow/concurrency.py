"""Which concurrency group does a run or a job belong to?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ci.workflow import storable
from ci.workflow.expressions import render, to_string, truthy
from ci.workflow.problems import PlanError

MAX_GROUP = 400
CONTRADICTION = "'queue: max' and 'cancel-in-progress: true' contradict each other. Remove one of the two"


@dataclass(frozen=True, slots=True)
class Concurrency:
    """`group` compares without regard to case. `queue`: "single" keeps one pending member, "max" keeps all."""

    group: str
    cancel_in_progress: bool = False
    queue: str = "single"


def evaluate_concurrency(value: object, contexts: Mapping[str, object]) -> Concurrency | None:
    """The value of a `concurrency` key; None where there is none, or its group is empty.

    Raises ExpressionError, and PlanError for a group that is no text or longer than 400 characters, and for one that
    shall both keep all members and cancel some.
    """
    if value is None:
        return None
    if isinstance(value, str):
        value = render(value, contexts)
    if isinstance(value, Mapping) and "group" not in value:
        raise PlanError("The concurrency has no group. Name one, such as `group: deploy`")
    settings = value if isinstance(value, Mapping) else {"group": value}
    group = _rendered(settings.get("group"), contexts)
    if isinstance(group, (dict, list)):
        raise PlanError("The concurrency group must be a text, not a mapping or a list")
    name = to_string(group)
    storable.check(name, "The concurrency group")
    if len(name) > MAX_GROUP:
        raise PlanError(f"The concurrency group is longer than {MAX_GROUP} characters: '{name[:50]}…'")
    if not name:
        return None
    queue = to_string(_rendered(settings.get("queue", "single"), contexts))
    cancels = truthy(_rendered(settings.get("cancel-in-progress", False), contexts))
    if queue == "max" and cancels:
        raise PlanError(CONTRADICTION)
    return Concurrency(name, cancel_in_progress=cancels, queue=queue if queue == "max" else "single")


def _rendered(value: object, contexts: Mapping[str, object]) -> object:
    return render(value, contexts) if isinstance(value, str) else value

"""Which of a commit's workflows does an event start? Those whose `on:` matches it, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ci.lifecycle.transitions import Cause, create_run, create_startup_failure
from ci.lifecycle.workflow_files import Loaded
from ci.models import Run, Workflow
from ci.workflow import Event, triggers
from ci.workflow import Workflow as Document


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """An event with all that is the same for every workflow it may start; `cause.path` is filled in for each.

    `changed_paths`: None when unknown, then path filters let it pass. `tell_problems`: whether a broken file becomes a
    startup failure; of an event other than a push nobody could tell what the file had wanted.
    """

    cause: Cause
    changed_paths: tuple[str, ...] | None = None
    tell_problems: bool = False


def fire(trigger: Trigger, loaded: Mapping[str, Loaded]) -> list[Run]:
    """The runs of this event, made or found, in the order of their paths."""
    cause = trigger.cause
    rows = Workflow.objects.filter(repository=cause.repository, enabled=False)
    disabled = set(rows.values_list("path", flat=True))
    runs = []
    for path, document in loaded.items():
        if path in disabled:
            continue
        run = _fire_one(trigger, replace(cause, path=path), document)
        if run is not None:
            runs.append(run)
    return runs


def _fire_one(trigger: Trigger, cause: Cause, document: Loaded) -> Run | None:
    if not isinstance(document, Document):
        return create_startup_failure(cause, document) if trigger.tell_problems else None
    if not triggers.matches(document, Event(cause.event, _github(cause), changed_paths=trigger.changed_paths)):
        return None
    if not cause.title:
        cause = replace(cause, title=document.name)
    return create_run(cause, document)


def _github(cause: Cause) -> dict[str, Any]:
    """What filters look at."""
    return {"ref": cause.ref, "sha": cause.sha, "event_name": cause.event, "event": cause.payload}

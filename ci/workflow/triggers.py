"""Does an event start a workflow? (GitHub docs, "Events that trigger workflows" and "Workflow syntax: on")"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.workflow import patterns
from ci.workflow.document.events import EVENTS
from ci.workflow.inputs import InputErrors, dispatch_inputs
from ci.workflow.workflow import Event, Workflow

__all__ = ["InputErrors", "dispatch_inputs", "matches"]

_HEADS = "refs/heads/"
_TAGS = "refs/tags/"


def matches(workflow: Workflow, event: Event) -> bool:
    """Whether the workflow runs for the event: it names the event, and every filter it gives lets it pass."""
    if event.name not in workflow.on:
        return False
    config = workflow.on[event.name]
    if event.name == "push":
        return _push(config, event)
    if event.name == "schedule":
        cron = event.payload.get("schedule")
        return cron is None or any(cron == known for known, _ in workflow.schedules)
    if event.name == "workflow_run" and not _workflow_named(config, event):
        return False
    if not _type_fits(config, event):
        return False
    if event.name == "image_version" and not _image_fits(config, event):
        return False
    branch = _branch(event)
    if branch is not None and not _ref_fits(config, "branches", branch):
        return False
    return not event.name.startswith("pull_request") or _paths_fit(config, event)


def _push(config: Mapping[str, Any], event: Event) -> bool:
    if event.payload.get("deleted") is True:
        return False
    ref = str(event.github.get("ref", ""))
    kind, other, name = ("tags", "branches", ref[len(_TAGS) :]) if ref.startswith(_TAGS) else ("branches", "tags", "")
    if kind == "branches":
        name = ref.removeprefix(_HEADS)
    if _filters(config, kind):
        if not _ref_fits(config, kind, name):
            return False
    elif _filters(config, other):
        # Only tags are filtered, so that no branch is meant; and the other way round.
        return False
    return kind == "tags" or _paths_fit(config, event)


def _filters(config: Mapping[str, Any], kind: str) -> bool:
    return bool(config.get(kind) or config.get(f"{kind}-ignore"))


def _ref_fits(config: Mapping[str, Any], kind: str, name: str) -> bool:
    return not (
        patterns.skips(config.get(kind, []), [name]) or patterns.ignores(config.get(f"{kind}-ignore", []), [name])
    )


def _paths_fit(config: Mapping[str, Any], event: Event) -> bool:
    paths = event.changed_paths
    if paths is None:
        return True
    if patterns.skips(config.get("paths", []), paths):
        return False
    return not patterns.ignores(config.get("paths-ignore", []), paths)


def _type_fits(config: Mapping[str, Any], event: Event) -> bool:
    facts = EVENTS.get(event.name)
    wanted = config.get("types") or (facts.default_types if facts else ())
    if not wanted:
        return True
    action = event.payload.get("action")
    return isinstance(action, str) and action.casefold() in {str(one).casefold() for one in wanted}


def _branch(event: Event) -> str | None:
    """The branch that `branches` of this event filters, None where there is none: the base of a pull request and of
    a merge group, the branch of the run that a workflow_run follows."""
    payload = event.payload
    if event.name in {"pull_request", "pull_request_target"}:
        named = event.github.get("base_ref") or _within(payload, "pull_request", "base", "ref")
    elif event.name == "merge_group":
        named = _within(payload, "merge_group", "base_ref")
    elif event.name == "workflow_run":
        named = _within(payload, "workflow_run", "head_branch")
    else:
        return None
    return str(named or "").removeprefix(_HEADS)


def _workflow_named(config: Mapping[str, Any], event: Event) -> bool:
    wanted = config.get("workflows")
    name = _within(event.payload, "workflow_run", "name") or _within(event.payload, "workflow", "name")
    return not wanted or name in wanted


def _image_fits(config: Mapping[str, Any], event: Event) -> bool:
    name = str(_within(event.payload, "image_version", "name") or "")
    version = str(_within(event.payload, "image_version", "version") or "")
    if patterns.skips(config.get("names", []), [name]):
        return False
    return not patterns.skips(config.get("versions", []), [version])


def _within(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value

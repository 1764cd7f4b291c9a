"""What does a converted file look like as a Workflow?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.workflow.document.nodes import Mapping as MappingNode
from ci.workflow.names import step_ids
from ci.workflow.uses import Reference
from ci.workflow.workflow import Definition, Workflow

# Filters that may be one text or a list of texts.
_LISTED = ("names", "versions", "workflows", "types", "branches", "tags", "paths")


def build(
    path: str, sources: Mapping[str, MappingNode], value: Mapping[str, Any], jobs: Mapping[str, Definition]
) -> Workflow:
    """The Workflow of a file that was converted and checked without a problem."""
    events = triggers(value["on"])
    dispatch = events.get("workflow_dispatch", {}).get("inputs") or {}
    schedule = value["on"].get("schedule") if isinstance(value["on"], dict) else None
    return Workflow(
        path=path,
        name=value.get("name") or path,
        on=events,
        env=_mapping(value.get("env")),
        defaults=_mapping(value.get("defaults")),
        concurrency=value.get("concurrency") or None,
        permissions=value.get("permissions"),
        jobs=jobs,
        run_name=value.get("run-name") or None,
        schedules=tuple(
            (entry["cron"], entry.get("timezone")) for entry in schedule or [] if entry and "cron" in entry
        ),
        dispatch_inputs={name: dispatch_input(definition or {}) for name, definition in dispatch.items()},
        source=sources[path],
        sources=sources,
    )


def jobs_of(value: Mapping[str, Any]) -> dict[str, Definition]:
    """The definition of every job of a converted file."""
    return {key: job(definition) for key, definition in value["jobs"].items()}


def called_workflow(reference: Reference, value: Mapping[str, Any]) -> Definition:
    """What a job that calls this file holds of it under `called`; JSON-able."""
    call = triggers(value["on"]).get("workflow_call") or {}
    return {
        "name": value.get("name") or reference.path,
        "key": reference.key,
        "path": reference.path,
        "repository": reference.repository,
        "ref": reference.ref,
        "env": _mapping(value.get("env")),
        "defaults": _mapping(value.get("defaults")),
        "permissions": value.get("permissions"),
        "concurrency": value.get("concurrency") or None,
        "inputs": call.get("inputs") or {},
        "secrets": call.get("secrets") or {},
        "outputs": call.get("outputs") or {},
        "jobs": jobs_of(value),
    }


def triggers(on: object) -> dict[str, Definition]:
    """`on:` in any of its forms as event name -> configuration, text filters as lists."""
    if isinstance(on, str):
        return {on: {}}
    if isinstance(on, list):
        found: dict[str, Definition] = {}
        for item in on:
            found.update(triggers(item))
        return found
    # Anything else was refused, if perhaps not by GitHub's parser, after whose judgement the rest may be looked at.
    configs = on.items() if isinstance(on, dict) else ()
    return {name: _event(config) if isinstance(config, dict) else {} for name, config in configs}


def _event(config: Definition) -> Definition:
    return {key: [value] if _is_filter(key) and isinstance(value, str) else value for key, value in config.items()}


def _is_filter(key: str) -> bool:
    return key.removesuffix("-ignore") in _LISTED


def dispatch_input(definition: Mapping[str, Any]) -> Definition:
    """A workflow_dispatch input with all its five keys."""
    kind = definition.get("type", "string")
    return {
        "description": definition.get("description", ""),
        "required": definition.get("required", False),
        "default": definition.get("default"),
        "type": kind,
        "options": definition.get("options", []) if kind == "choice" else [],
    }


def job(value: Mapping[str, Any]) -> Definition:
    """A job's definition: as written, `needs` always a list, every step with an id."""
    needs = value.get("needs", [])
    definition = {**value, "needs": [needs] if isinstance(needs, str) else list(dict.fromkeys(needs))}
    if "steps" in value:
        ids = step_ids(value["steps"])
        steps = zip(value["steps"], ids, strict=True)
        definition["steps"] = [_with_mappings({**step, "id": name}) for step, name in steps]
    return _with_mappings(definition)


def _with_mappings(value: Definition) -> Definition:
    for key in ("env", "with", "outputs"):
        if isinstance(value.get(key), str):
            value[key] = _mapping(value[key])
    return value


def _mapping(value: object) -> Definition:
    """A mapping. One expression that stands for a whole mapping becomes GitHub's other way to write the same."""
    if isinstance(value, str):
        return {"${{ insert }}": value}
    return value if isinstance(value, dict) else {}

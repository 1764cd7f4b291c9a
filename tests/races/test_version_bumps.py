"""Can a bulk update, or an action of the admin, get past the version? Nobody but the lifecycle writes, and it bumps.

That each transition bumps the version of what it changes is checked with every call of the exploration; here it is that
no line of the code writes in another way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib import admin

from ci.models import Event, Heartbeat, Job, Log, Run, Runner, RunnerSet, Step

ROOT = Path(__file__).resolve().parents[2]
# Whoever changes one of these has decided something, and must say so by the version.
DECIDED = {
    "state",
    "phase",
    "hold",
    "conclusion",
    "cancel_reason",
    "runner",
    "runner_id",
    "token_hash",
    "poll_id",
    "assignment",
    "attempt",
    "ended_at",
}
# Steps and attempts have no version: the lock of their job or runner is theirs.
WITHOUT_VERSION = {
    ("ci/lifecycle/transitions/moves.py", "_end_steps"),
    ("ci/lifecycle/transitions/launching.py", "close"),
}
WRITES = {"update", "bulk_update", "save", "update_or_create"}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Of the app whose rows they are: nothing else imports its models."""
    for file in sorted((ROOT / "ci").rglob("*.py")):
        path = file.relative_to(ROOT).as_posix()
        if not path.startswith(("ci/migrations/", "ci/workflow/", "ci/runner/")):
            yield path, ast.parse(file.read_text())


def writes(tree: ast.Module) -> Iterator[tuple[str, ast.Call, set[str]]]:
    """(function, call, names of the fields) of everything that looks like a write to rows."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for call in ast.walk(function):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr in WRITES:
                yield function.name, call, fields(call)


def fields(call: ast.Call) -> set[str]:
    named = {keyword.arg for keyword in call.keywords if keyword.arg}
    strings = [node for part in [*call.args, *call.keywords] for node in ast.walk(part)]
    return named | {node.value for node in strings if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_who_writes_what_was_decided_bumps_the_version() -> None:
    past = []
    for path, tree in sources():
        for function, call, names in writes(tree):
            if names & DECIDED and "version" not in names and (path, function) not in WITHOUT_VERSION:
                past.append(f"{path}:{call.lineno} writes {sorted(names & DECIDED)} without a version")
    assert not past


def test_only_the_lifecycle_writes_what_was_decided() -> None:
    past = []
    for path, tree in sources():
        if not path.startswith("ci/lifecycle/"):
            found = [(call, names & DECIDED) for _, call, names in writes(tree) if names & DECIDED]
            past += [f"{path}:{call.lineno} writes {sorted(names)}" for call, names in found]
    assert not past


def test_the_look_for_writes_finds_them() -> None:
    """Positive control: the ones that are known."""
    found = {(path, function) for path, tree in sources() for function, _, names in writes(tree) if names & DECIDED}
    assert found > WITHOUT_VERSION
    assert ("ci/lifecycle/transitions/claim.py", "repeat_claim") in found


@pytest.mark.parametrize("model", [Run, Job, Step, Runner, Event, Heartbeat, Log], ids=lambda model: model.__name__)
def test_the_admin_has_no_form_for_what_the_lifecycle_writes(rf, model: type) -> None:  # type: ignore[no-untyped-def]
    registered = admin.site._registry.get(model)
    if registered is None:
        return
    request = rf.get("/")
    assert not registered.has_add_permission(request)
    assert not registered.has_change_permission(request)
    assert not registered.has_delete_permission(request)


def test_the_admin_saves_a_runner_set_by_its_version(rf) -> None:  # type: ignore[no-untyped-def]
    """Its form is written by the lifecycle, and its rows are deleted by it alone."""
    registered = admin.site._registry[RunnerSet]
    assert "save_runner_set" in Path(ROOT / "ci/admin/runner_sets.py").read_text()
    assert type(registered).save_model is not admin.ModelAdmin.save_model
    assert type(registered).save_related is not admin.ModelAdmin.save_related
    assert not registered.has_delete_permission(rf.get("/"))

"""Which `uses:` has a built-in action, with which inputs, and where can the real one not work?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ci.runner.metadata import Action

CHECKOUT = "actions/checkout"
USING = "built-in"
NEWEST = 99

Inputs = dict[str, dict[str, Any]]

_FALSE: dict[str, Any] = {"default": "false"}
_SAVE_ALWAYS: dict[str, Any] = {
    "default": "false",
    "deprecationMessage": "Use `actions/cache/restore`, and `actions/cache/save` in a step with `if: always()`.",
}


def _upload(major: int) -> Inputs:
    inputs: Inputs = {
        "name": {"default": "artifact"},
        "path": {},
        "if-no-files-found": {"default": "warn"},
        "retention-days": {},
        "include-hidden-files": _FALSE,
    }
    if major >= 4:
        inputs |= {"compression-level": {"default": "6"}, "overwrite": _FALSE}
    return {**inputs, "archive": {"default": "true"}} if major >= 7 else inputs


def _merge(major: int) -> Inputs:
    return {
        "name": {"default": "merged-artifacts"},
        "pattern": {"default": "*"},
        "separate-directories": _FALSE,
        "retention-days": {},
        "compression-level": {"default": "6"},
        "delete-merged": _FALSE,
        "include-hidden-files": _FALSE,
    }


def _download(major: int) -> Inputs:
    inputs: Inputs = {"name": {}, "path": {}}
    if major >= 4:
        inputs |= {
            "artifact-ids": {},
            "pattern": {},
            "merge-multiple": _FALSE,
            "github-token": {},
            "repository": {"default": "${{ github.repository }}"},
            "run-id": {"default": "${{ github.run_id }}"},
        }
    if major >= 8:
        inputs |= {"skip-decompress": _FALSE, "digest-mismatch": {"default": "error"}}
    return inputs


def _cache(major: int) -> Inputs:
    return {**_restore(major), **_save(major)} | ({"save-always": _SAVE_ALWAYS} if major >= 4 else {})


def _restore(major: int) -> Inputs:
    names = ("path", "key", "restore-keys")
    return {**{name: {} for name in names}, **_OS, "fail-on-cache-miss": _FALSE, "lookup-only": _FALSE}


def _save(major: int) -> Inputs:
    return {**{name: {} for name in ("path", "key", "upload-chunk-size")}, **_OS}


# Changes nothing but on Windows, where this runner does not run.
_OS: Inputs = {"enableCrossOsArchive": _FALSE}


@dataclass(frozen=True)
class _Kind:
    """`modern`: the first major whose real client works with GitHub's host names only."""

    inputs: Callable[[int], Inputs]
    post: bool = False
    modern: int = NEWEST + 1


_KINDS = {
    "actions/upload-artifact": _Kind(_upload, modern=4),
    "actions/upload-artifact/merge": _Kind(_merge, modern=4),
    "actions/download-artifact": _Kind(_download, modern=4),
    "actions/cache": _Kind(_cache, post=True),
    "actions/cache/restore": _Kind(_restore),
    "actions/cache/save": _Kind(_save),
}


def _taken_apart(uses: str) -> tuple[str, int]:
    """Name and major; a commit or branch is taken for the newest."""
    name, _, ref = uses.partition("@")
    match = re.fullmatch(r"v?(\d{1,2})(?:\.\d+)*", ref)
    return name.lower().rstrip("/"), int(match[1]) if match else NEWEST


def knows(uses: str) -> bool:
    """Is there a built-in action for this?"""
    name, _ = _taken_apart(uses)
    return "@" in uses and (name == CHECKOUT or name in _KINDS)


def built_in(uses: str) -> str:
    """How logs call it: "built-in checkout", "built-in cache/restore"."""
    return f"built-in {_taken_apart(uses)[0].removeprefix('actions/')}"


def is_checkout(uses: str) -> bool:
    return _taken_apart(uses)[0] == CHECKOUT


def works_at_github_only(uses: str, server_url: str) -> bool:
    """Would the real action refuse this forge? @actions/artifact from its second major on takes every server that is
    not named github.com, *.ghe.com or *.localhost for one without artifacts."""
    name, major = _taken_apart(uses)
    kind = _KINDS.get(name)
    host = (urlsplit(server_url).hostname or "").lower()
    return (
        kind is not None
        and major >= kind.modern
        and host != "github.com"
        and not host.endswith((".ghe.com", ".localhost"))
    )


def action(uses: str) -> Action:
    """The built-in action; only for what is known and no checkout."""
    name, major = _taken_apart(uses)
    kind = _KINDS[name]
    runs: dict[str, Any] = {"using": USING, "main": name, "major": major}
    if kind.post:
        runs |= {"post": name, "post-if": "success()"}
    return Action(
        label=uses,
        folder=Path(__file__).parent,
        name=name,
        inputs=kind.inputs(major),
        outputs={},
        runs=runs,
        repository="/".join(name.split("/")[:2]),
        ref=uses.partition("@")[2],
    )


def post_condition(action: Action, inputs: dict[str, str]) -> str:
    """The `if` of an action's post stage."""
    if action.using == USING and inputs.get("save-always", "").lower() == "true":
        return "always()"
    return str(action.runs.get("post-if") or "always()")

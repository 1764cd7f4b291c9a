"""`manage.py workflow check | plan`: what is wrong with a workflow file, and what would it run? Without pushing it."""

from __future__ import annotations

import json
from collections.abc import Mapping as Given
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ci.lifecycle.fired_events import never_fired
from ci.workflow import Event, InputErrors, PlanError, Problem, Workflow, WorkflowErrors, load
from ci.workflow.document.events import EVENTS
from ci.workflow.document.nodes import Mapping, Node, Scalar, Sequence
from ci.workflow.expressions import ExpressionError, render
from ci.workflow.inputs import call_inputs, dispatch_inputs, payload
from ci.workflow.preview import Preview, preview

FOLDER = Path(".github/workflows")
MOST_BYTES = 1024 * 1024 + 1  # one more than the language takes: it says so itself


class Command(BaseCommand):
    help = "Check workflow files, or show the jobs that an event would start. Needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        check = verbs.add_parser("check", help="problems (exit status 1) and notices, with file, line and column")
        check.add_argument("files", nargs="+", metavar="FILE")
        check.add_argument("--json", action="store_true")
        plan = verbs.add_parser("plan", help="the jobs that an event would start")
        plan.add_argument("file", metavar="FILE")
        plan.add_argument("--event", default="push", help="its name (default: push)")
        plan.add_argument("--ref", default="main", help="branch, tag or full ref (default: main)")
        plan.add_argument(
            "--inputs", nargs="*", default=[], metavar="NAME=VALUE", help="of workflow_dispatch or workflow_call"
        )
        plan.add_argument("--changed", nargs="*", metavar="PATH", help="changed paths, for path filters")
        plan.add_argument("--payload", metavar="FILE", help="the event's payload as JSON")
        plan.add_argument("--json", action="store_true")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        if verb == "check":
            self._check(options["files"], as_json=options["json"])
        else:
            self._plan(options)

    def _check(self, names: list[str], *, as_json: bool) -> None:
        found = [one for name in names for one in _findings(name)]
        problems = [one for one in found if one["level"] == "problem"]
        if as_json:
            self.stdout.write(json.dumps(found, indent=2))
        else:
            for one in found:
                notice = "notice: " if one["level"] == "notice" else ""
                self.stdout.write("{path}:{line}:{column}: {notice}{message}".format(notice=notice, **one))
        if problems:
            raise CommandError(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found.", returncode=1)
        if not as_json:
            self.stdout.write(f"{len(names)} file{'s' if len(names) > 1 else ''} checked, no problem found.")

    def _plan(self, options: Given[str, Any]) -> None:
        document = _loaded(options["file"])
        try:
            found = preview(document, _event(document, options))
        except PlanError as error:
            raise CommandError(str(error)) from None
        if options["json"]:
            jobs = [job.as_dict() for job in found.jobs]
            shown = {"workflow": document.name, "run_name": found.run_name, "triggered": found.triggered, "jobs": jobs}
            self.stdout.write(json.dumps(shown, indent=2))
        else:
            self._table(document, found, options)

    def _table(self, document: Workflow, found: Preview, options: Given[str, Any]) -> None:
        starts = "starts" if found.triggered else "does not start"
        self.stdout.write(f"{options['event']} on {options['ref']} {starts} {found.run_name or document.name}.")
        if not found.triggered:
            self.stdout.write("If it did:")
        head = ("job", "name", "needs", "runs on", "outcome")
        rows = [
            (
                job.key,
                job.name,
                ", ".join(job.needs),
                ", ".join(job.labels),
                f"{job.outcome}: {job.note}" if job.note else job.outcome,
            )
            for job in found.jobs
        ]
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head) - 1)]
        for row in (head, *rows):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            self.stdout.write("  ".join([*cells, row[-1]]).rstrip())


def _findings(name: str) -> list[dict[str, Any]]:
    """Problems, or of a file without any what is only worth knowing."""
    path, files = _files(name)
    try:
        document = load(path, files)
    except WorkflowErrors as errors:
        return [{**asdict(problem), "level": "problem"} for problem in errors.problems]
    notices = (*document.notices, *_never_fired(document))
    return [{**asdict(notice), "level": "notice"} for notice in sorted(notices, key=lambda one: (one.path, one.line))]


def _never_fired(document: Workflow) -> list[Problem]:
    """The events that no push, call or clock of this server starts the workflow for, each at its name."""
    on = document.source.get("on")
    nodes: list[Node] = [key for key, _ in on.pairs] if isinstance(on, Mapping) else [on] if on is not None else []
    nodes = on.items if isinstance(on, Sequence) else nodes
    named = {node.text: node for node in nodes if isinstance(node, Scalar)}
    found = [(named[name], name) for name in never_fired(document.on) if name in named]
    message = "This server does not fire {} yet: it does not start the workflow"
    return [Problem(document.path, node.line, node.column, message.format(name)) for node, name in found]


def _loaded(name: str) -> Workflow:
    path, files = _files(name)
    try:
        return load(path, files)
    except WorkflowErrors as errors:
        lines = "\n".join(str(problem) for problem in errors.problems)
        raise CommandError(f"The file has problems:\n{lines}", returncode=1) from None


def _files(name: str) -> tuple[str, dict[str, str | bytes | None]]:
    """The path within its repository, and that repository's workflow files, which it may call."""
    file = Path(name).resolve()
    root = next((folder for folder in file.parents if (folder / FOLDER).is_dir()), None)
    beside = sorted((root / FOLDER).glob("*.y*ml")) if root is not None else []
    try:
        files: dict[str, str | bytes | None] = {
            str(path.relative_to(root)): _read(path) for path in beside if root is not None
        }
        if root is None or file not in beside:
            files[name] = _read(file)
            return name, files
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from None
    return str(file.relative_to(root)), files


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES)


def _event(document: Workflow, options: Given[str, Any]) -> Event:
    name, ref = options["event"], options["ref"]
    if name not in EVENTS:
        raise CommandError(f"There is no event {name}. Use one of: {', '.join(EVENTS)}.")
    full = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
    body = _payload(options["payload"])
    body.setdefault("ref", full)
    short = full.removeprefix("refs/heads/").removeprefix("refs/tags/")
    github = {"event_name": name, "event": body, "ref": full, "ref_name": short, "sha": "0" * 40, "actor": "you"}
    github |= {"ref_type": "tag" if full.startswith("refs/tags/") else "branch", "workflow": document.name}
    github |= _told(body)
    inputs = _inputs(document, github, options)
    if name == "workflow_dispatch":
        body.setdefault("inputs", payload(inputs))
    changed = options["changed"]
    return Event(name, github, changed_paths=tuple(changed) if changed is not None else None, inputs=inputs)


def _inputs(document: Workflow, github: Given[str, Any], options: Given[str, Any]) -> dict[str, Any]:
    """Typed as for a real dispatch or call, defaults filled in."""
    name = options["event"]
    given = dict(_pair(text) for text in options["inputs"])
    if name not in ("workflow_dispatch", "workflow_call"):
        if given:
            raise CommandError(f"--inputs belongs to --event workflow_dispatch or workflow_call; {name} has none.")
        return {}
    if given and name not in document.on:
        raise CommandError(f"--inputs has nothing to fill: {document.path} has no {name} under 'on:'.")

    def evaluated(default: object) -> object:
        return render(default, {"github": github, "inputs": {}, "vars": {}}) if isinstance(default, str) else default

    try:
        if name == "workflow_dispatch":
            return dispatch_inputs(document, given)
        return call_inputs(document, given, evaluated)
    except InputErrors as errors:
        raise CommandError(f"The inputs do not fit. {errors}") from None
    except ExpressionError as error:
        raise CommandError(f"The default of an input cannot be evaluated. {error}") from None


def _told(body: Given[str, Any]) -> dict[str, Any]:
    """What the `github` context takes from the payload: the repository, and the branches of a pull request."""
    found = {
        "repository": _within(body, "repository", "full_name"),
        "base_ref": _within(body, "pull_request", "base", "ref"),
        "head_ref": _within(body, "pull_request", "head", "ref"),
    }
    owner = found["repository"].partition("/")[0]
    return {**found, "repository_owner": owner}


def _within(body: object, *keys: str) -> str:
    for key in keys:
        body = body.get(key) if isinstance(body, Given) else None
    return body if isinstance(body, str) else ""


def _payload(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    try:
        body = json.loads(Path(name).read_text())
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise CommandError(f"{name} is no JSON: {error}.") from None
    if not isinstance(body, dict):
        raise CommandError(f"{name} must hold a JSON object.")
    return body


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise CommandError(f"--inputs takes NAME=VALUE, not {text}.")
    return name, value

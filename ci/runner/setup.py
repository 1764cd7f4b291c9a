"""What must be ready before a job's first step?"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from typing import Any

from ci.runner import VERSION, git
from ci.runner.console import Console
from ci.runner.containers import check as check_containers
from ci.runner.control import Guard
from ci.runner.payload import mapping
from ci.runner.session import Scope, Session, StepFailure
from ci.runner.steps import Steps
from ci.runner.uses import Pre
from ci.runner.workspace import WorkError


class SetUp:
    """The step "Set up job"."""

    def __init__(self, session: Session, scope: Scope, *, labels: Sequence[str], console: Console) -> None:
        self._session = session
        self._scope = scope
        self._labels = labels
        self._console = console

    def run(self, steps: Steps, definitions: list[dict[str, Any]]) -> list[Pre] | None:
        """The pre stages to run, or None where the job cannot start: then the log says why."""
        session, console = self._session, self._console
        self._introduce()
        try:
            if session.control.cancelled:
                raise StepFailure("The job was cancelled before it began.")
            self._make_folders()
            self._evaluate_env()
            check_containers(session, self._scope, session.payload.definition, runner=str(session.runner["name"]))
            if any(definition.get("uses") for definition in definitions):
                console.print("Prepare all required actions")
            pres = steps.uses.prepare(self._scope, definitions, console=console, guard=Guard(session.control))
            console.print(f"Complete job name: {session.payload.name}")
            console.end("success")
            return pres
        except (StepFailure, WorkError) as error:
            console.error(str(error))
        except OSError as error:
            console.error(f"The work folder {session.folders.root} cannot be used: {error.strerror}")
        console.end("cancelled" if session.control.cancelled else "failure")
        return None

    def _introduce(self) -> None:
        console = self._console
        console.print(f"Current runner version: '{VERSION}'")
        console.print("##[group]Runner")
        console.print(f"Runner name: {self._session.runner['name']}")
        console.print(f"Labels: {', '.join(self._labels)}")
        console.print("##[endgroup]")
        console.print("##[group]Operating System")
        console.print(f"{platform.system()} {platform.release()} {platform.machine()}")
        console.print(f"Python {platform.python_version()}, git {git.version() or 'not found'}")
        console.print("##[endgroup]")

    def _make_folders(self) -> None:
        folders = self._session.folders
        folders.prepare()
        event = folders.temp / "_github_workflow" / "event.json"
        event.parent.mkdir(parents=True)
        event.write_text(json.dumps(self._session.payload.github.get("event") or {}, indent=2), encoding="utf-8")

    def _evaluate_env(self) -> None:
        """Workflow env, job env over it, and the defaults of run steps."""
        session, scope = self._session, self._scope
        functions = session.functions(scope)
        payload = session.payload
        for level, value in (("workflow", payload.workflow_env), ("job", payload.definition.get("env"))):
            session.env |= session.texts(value, session.contexts(scope), functions, what=f"the {level}'s env")
        for defaults in (payload.workflow_defaults, payload.definition.get("defaults")):
            if run := mapping(defaults).get("run"):
                given = session.texts(run, session.contexts(scope), functions, what="defaults.run")
                # The job's replace the workflow's as a whole, also what they do not name.
                session.run_defaults = {name: value for name, value in given.items() if value}

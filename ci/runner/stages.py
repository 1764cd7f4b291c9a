"""Through which stages does a job go: set-up, pre, its steps, post, completion?"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from ci.runner.console import Console
from ci.runner.control import Control, Guard
from ci.runner.logstream import MOST_STEPS, LogStream, bare
from ci.runner.masks import Masks
from ci.runner.metadata import with_ids
from ci.runner.outputs import evaluate_environment_url, evaluate_outputs
from ci.runner.process import end_orphans
from ci.runner.session import Post, Scope, Session, StepFailure
from ci.runner.setup import SetUp
from ci.runner.steps import Steps
from ci.runner.uses import Pre, title

Definitions = list[dict[str, Any]]


class Stages:
    """One job at work. Each stage has a console, a step on the job's page, numbered as they come."""

    def __init__(
        self, *, log: LogStream, masks: Masks, control: Control, tracking: str, report: Callable[[str], None]
    ) -> None:
        self.outputs: dict[str, str] = {}
        self.environment_url = ""
        self._log = log
        self._masks = masks
        self._control = control
        self._tracking = tracking
        self._report = report
        self._debug = False
        self._consoles: list[Console] = []

    def run(self, prepare: Callable[[], Session], *, labels: Sequence[str]) -> str:
        """The conclusion. A fault of the runner itself ends the job as a failure that says so."""
        setup = self._console("Set up job")
        setup.begin()
        try:
            return self._run(prepare(), setup, labels)
        except Exception as error:
            # Whatever happened, the job must end, and with a reason.
            self._report(self._masks.hide("".join(traceback.format_exception(error))))
            self._consoles[-1].error(f"The runner failed: {type(error).__name__}: {error}")
            for console in self._consoles:
                if console.conclusion is None:
                    console.end("failure")
            return "cancelled" if self._control.cancelled else "failure"

    def reports(self) -> list[dict[str, Any]]:
        """Every step as the call that completes the job wants it."""
        return [bare(console.report()) for console in self._consoles[:MOST_STEPS]]

    def _console(self, name: str) -> Console:
        console = Console(
            number=len(self._consoles) + 1, name=name, log=self._log, masks=self._masks, debug=self._debug
        )
        self._consoles.append(console)
        return console

    def _run(self, session: Session, setup: Console, labels: Sequence[str]) -> str:
        steps, scope = Steps(session), Scope()
        definitions = with_ids(session.payload.steps)
        self._debug = setup.debug = session.debug
        pres = SetUp(session, scope, labels=labels, console=setup).run(steps, definitions)
        names = [title(session, scope, definition, early=True) for definition in definitions]
        if pres is None:
            session.failed = True
            for name in names:
                self._console(name).end("skipped")
        else:
            guard = Guard(self._control, survives=lambda: True)
            before = [self._console(pre.name) for pre in pres]
            consoles = [self._console(name) for name in names]
            for console in (*before, *consoles):
                console.announce()
            for pre, console in zip(pres, before, strict=True):
                self._around(session, pre, console, guard)
            self._steps(steps, scope, definitions, consoles, guard)
            self._post(session, scope, guard)
        self._complete(session, scope)
        return session.status

    def _steps(
        self, steps: Steps, scope: Scope, definitions: Definitions, consoles: list[Console], guard: Guard
    ) -> None:
        for definition, console in zip(definitions, consoles, strict=True):
            if self._control.over:
                console.end("cancelled" if self._control.cancelled else "skipped")
                continue
            console.begin()
            console.end(steps.perform(scope, definition, console=console, parent=guard))

    def _post(self, session: Session, scope: Scope, guard: Guard) -> None:
        for post in reversed(scope.posts):
            if self._control.over:
                break
            self._around(session, post, self._console(post.name), guard)

    def _around(self, session: Session, work: Pre | Post, console: Console, guard: Guard) -> None:
        """A pre or post stage. It goes on through a cancel: cleaning up is what it is there for."""
        console.begin()
        try:
            if not work.holds():
                console.end("skipped")
                return
            work.run(console, guard)
            console.end("success")
        except StepFailure as error:
            if self._control.over:
                console.error("The operation was canceled.")
                console.end("cancelled")
                return
            if str(error):
                console.error(str(error))
            session.failed = True
            console.end("failure")

    def _complete(self, session: Session, scope: Scope) -> None:
        console = self._console("Complete job")
        console.begin()
        if self._control.stopped:
            console.error(f"The job was stopped: {self._control.stopped}")
        elif self._control.cancel_reason and self._control.over:
            console.error("The job did not end within the time a cancelled job has, and was stopped.")
        try:
            self.outputs = evaluate_outputs(session, scope, console)
            self.environment_url = evaluate_environment_url(session, scope, console)
        except StepFailure as error:
            console.error(str(error))
            session.failed = True
        console.print("Cleaning up orphan processes")
        for pid in end_orphans(self._tracking):
            console.print(f"Terminate orphan process: pid ({pid})")
        console.end("success" if session.status == "success" or not console.has_errors else "failure")

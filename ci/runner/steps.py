"""How does one step go from its `if` to its conclusion?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ci.runner.console import Console
from ci.runner.control import Guard
from ci.runner.scripts import Failed, run_script
from ci.runner.session import Scope, Session, StepFailure
from ci.runner.uses import Cancelled, Uses

LONGEST_MINUTES = 60.0 * 24 * 30


class Steps:
    """Carries out steps for the job and, through Uses, for composite actions."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.uses = Uses(session, self)

    def perform(self, scope: Scope, step: dict[str, Any], *, key: str, console: Console, parent: Guard) -> str:
        """Run one step and record it in the `steps` context; its conclusion. A failure marks scope and job failed."""
        session = self.session
        outputs: dict[str, str] = {}
        env: dict[str, str] = {}
        try:
            env = self._env(scope, step)
            if not self._holds(scope, step, env):
                return self._record(scope, step, "skipped", "skipped", {})
            guard = self._guard(scope, step, env, parent)
        except StepFailure as error:
            console.error(str(error))
            return self._settle(scope, step, "failure", env, {}, console)
        try:
            if step.get("uses"):
                outputs = self.uses.run(scope, step, key=key, env=env, console=console, guard=guard)
            else:
                outputs = run_script(session, scope, step, env=env, console=console, guard=guard)
            outcome = "success"
        except StepFailure as error:
            outputs = error.outputs if isinstance(error, Failed) else {}
            outcome = self._explain(error, step, guard, console)
        return self._settle(scope, step, outcome, env, outputs, console)

    def _env(self, scope: Scope, step: dict[str, Any]) -> dict[str, str]:
        contexts = self.session.contexts(scope, action=str(step.get("id") or ""))
        return self.session.texts(step.get("env"), contexts, self.session.functions(scope), what="env")

    def _holds(self, scope: Scope, step: dict[str, Any], env: dict[str, str], *, as_cancelled: bool = False) -> bool:
        """The step's own env counts for its `if`, as on GitHub."""
        if self.session.control.over:
            return False
        contexts = self.session.contexts(scope, env=env, action=str(step.get("id") or ""))
        return self.session.holds(step.get("if"), contexts, self.session.functions(scope, as_cancelled=as_cancelled))

    def _guard(self, scope: Scope, step: dict[str, Any], env: dict[str, str], parent: Guard) -> Guard:
        def survives() -> bool:
            try:
                # A composite action is not interrupted as a whole: each of its steps answers for itself.
                return self.uses.is_composite(step) or self._holds(scope, step, env, as_cancelled=True)
            except StepFailure:
                return False

        minutes = self._minutes(scope, step, env)
        seconds = None if minutes is None else minutes * 60
        return Guard(self.session.control, parent=parent, seconds=seconds, survives=survives)

    def _minutes(self, scope: Scope, step: dict[str, Any], env: dict[str, str]) -> float | None:
        given = step.get("timeout-minutes")
        if given is None or given == "":
            return None
        contexts = self.session.contexts(scope, env=env)
        value = self.session.text(given, contexts, self.session.functions(scope), what="timeout-minutes")
        try:
            minutes = float(value)
        except ValueError:
            minutes = math.nan
        if not 0 < minutes <= LONGEST_MINUTES:
            raise StepFailure(f"timeout-minutes must be a number of minutes above 0, not '{value[:100]}'")
        return minutes

    def _explain(self, error: StepFailure, step: dict[str, Any], guard: Guard, console: Console) -> str:
        """Say in the log why the step did not succeed; its outcome."""
        if isinstance(error, Cancelled):
            return "cancelled"
        if guard.cancels() or self.session.control.over:
            console.error("The operation was canceled.")
            return "cancelled"
        if guard.timed_out:
            name = step.get("name") or step.get("uses") or str(step.get("run") or "").strip().split("\n")[0]
            console.error(f"The action '{str(name)[:200]}' has timed out after {step.get('timeout-minutes')} minutes.")
        elif guard.expired:
            console.error("The operation was canceled: the time of the enclosing step is used up.")
        elif str(error):
            console.error(str(error))
        return "failure"

    def _settle(
        self,
        scope: Scope,
        step: dict[str, Any],
        outcome: str,
        env: dict[str, str],
        outputs: dict[str, str],
        console: Console,
    ) -> str:
        conclusion = outcome
        if outcome == "failure" and self._tolerates(scope, step, env, console):
            conclusion = "success"
        if conclusion == "failure":
            scope.failed = True
            if not scope.composite:
                self.session.failed = True
        return self._record(scope, step, outcome, conclusion, outputs)

    def _tolerates(self, scope: Scope, step: dict[str, Any], env: dict[str, str], console: Console) -> bool:
        given = step.get("continue-on-error")
        if given is None:
            return False
        contexts = self.session.contexts(scope, env=env)
        try:
            return self.session.flag(given, contexts, self.session.functions(scope), what="continue-on-error")
        except StepFailure as error:
            console.error(str(error))
            return False

    def _record(
        self, scope: Scope, step: dict[str, Any], outcome: str, conclusion: str, outputs: Mapping[str, str]
    ) -> str:
        name = str(step.get("id") or "")
        # Generated ids begin with __ and are not for expressions.
        if name and not name.startswith("__"):
            scope.steps[name] = {"outputs": dict(outputs), "outcome": outcome, "conclusion": conclusion}
        return conclusion

"""How does one step go from its `if` to its conclusion?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ci.runner.console import Console
from ci.runner.control import Guard
from ci.runner.scripts import Failed, run_script
from ci.runner.session import BrokenCondition, Scope, Session, StepFailure
from ci.runner.uses import Cancelled, Uses, title

LONGEST_MINUTES = 60.0 * 24 * 30


class Steps:
    """Carries out steps for the job and, through Uses, for composite actions."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.uses = Uses(session, self)

    def perform(self, scope: Scope, step: dict[str, Any], *, console: Console, parent: Guard) -> str:
        """Run one step and record it in the `steps` context; its conclusion. A failure marks scope and job failed."""
        try:
            env = self._env(scope, step)
            if not scope.composite:
                console.rename(title(self.session, scope, step, env=env))
            if not self._holds(scope, step, env):
                return self._record(scope, step, "skipped", "skipped", {})
        except StepFailure as error:
            # As on GitHub `continue-on-error` is for what the step does, not for a broken `if` or `env`.
            console.error(str(error))
            scope.broken = isinstance(error, BrokenCondition)
            return self._conclude(scope, step, "failure", "failure", {})
        self.session.next_files()
        outcome, outputs = self._carry_out(scope, step, env, console, parent)
        tolerated = outcome == "failure" and self._tolerates(scope, step, env, console)
        return self._conclude(scope, step, outcome, "success" if tolerated else outcome, outputs)

    def _carry_out(
        self, scope: Scope, step: dict[str, Any], env: dict[str, str], console: Console, parent: Guard
    ) -> tuple[str, dict[str, str]]:
        """The step's outcome and outputs."""
        minutes = self._minutes(scope, step, env, console)
        guard = self._guard(scope, step, env, parent, minutes)
        try:
            if step.get("uses"):
                return "success", self.uses.run(scope, step, env=env, console=console, guard=guard)
            return "success", run_script(self.session, scope, step, env=env, console=console, guard=guard)
        except StepFailure as error:
            outputs = error.outputs if isinstance(error, Failed) else {}
            if isinstance(error, Cancelled):
                return "cancelled", outputs
            if guard.cancels() or self.session.control.over:
                console.error("The operation was canceled.")
                return "cancelled", outputs
            self._explain(error, step, guard, console, minutes)
            return "failure", outputs

    def _contexts(self, scope: Scope, step: dict[str, Any], env: dict[str, str] | None = None) -> dict[str, Any]:
        return self.session.contexts(scope, env=env, action=str(step.get("id") or ""))

    def _env(self, scope: Scope, step: dict[str, Any]) -> dict[str, str]:
        if not step.get("env"):
            return {}
        return self.session.texts(step["env"], self._contexts(scope, step), self.session.functions(scope), what="env")

    def _holds(self, scope: Scope, step: dict[str, Any], env: dict[str, str], *, as_cancelled: bool = False) -> bool:
        """The step's own env counts for its `if`, as on GitHub."""
        if self.session.control.over:
            return False
        contexts = self._contexts(scope, step, env)
        return self.session.holds(step.get("if"), contexts, self.session.functions(scope, as_cancelled=as_cancelled))

    def _guard(
        self, scope: Scope, step: dict[str, Any], env: dict[str, str], parent: Guard, minutes: float | None
    ) -> Guard:
        def survives() -> bool:
            try:
                # A composite action is not interrupted as a whole: each of its steps answers for itself.
                return self.uses.is_composite(step) or self._holds(scope, step, env, as_cancelled=True)
            except StepFailure:
                return False

        seconds = None if minutes is None else minutes * 60
        return Guard(self.session.control, parent=parent, seconds=seconds, survives=survives)

    def _minutes(self, scope: Scope, step: dict[str, Any], env: dict[str, str], console: Console) -> float | None:
        """None for no limit of its own: as on GitHub also for 0 and, with a word in the log, for what is no number."""
        given = step.get("timeout-minutes")
        if given is None or given == "":
            return None
        functions = self.session.functions(scope)
        try:
            value = self.session.text(given, self._contexts(scope, step, env), functions, what="timeout-minutes")
            minutes = float(value or 0)
        except StepFailure as error:
            console.error(str(error))
            return None
        except ValueError:
            minutes = math.nan
        if math.isnan(minutes):
            console.error(f"timeout-minutes must be a number of minutes, not '{value[:100]}'. The step has no limit.")
            return None
        return min(minutes, LONGEST_MINUTES) if minutes > 0 else None

    def _explain(
        self, error: StepFailure, step: dict[str, Any], guard: Guard, console: Console, minutes: float | None
    ) -> None:
        """Say in the log why the step failed."""
        if guard.timed_out:
            name = step.get("name") or step.get("uses") or str(step.get("run") or "").strip().split("\n")[0]
            console.error(f"The action '{str(name)[:200]}' has timed out after {minutes:g} minutes.")
        elif guard.expired:
            console.error("The operation was canceled: the time of the enclosing step is used up.")
        elif str(error):
            console.error(str(error))

    def _conclude(
        self, scope: Scope, step: dict[str, Any], outcome: str, conclusion: str, outputs: dict[str, str]
    ) -> str:
        if conclusion == "failure":
            scope.failed = True
            if not scope.composite:
                self.session.failed = True
        return self._record(scope, step, outcome, conclusion, outputs)

    def _tolerates(self, scope: Scope, step: dict[str, Any], env: dict[str, str], console: Console) -> bool:
        given = step.get("continue-on-error")
        if given is None:
            return False
        contexts = self._contexts(scope, step, env)
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

"""How does a JavaScript action run its pre, main and post stage?"""

from __future__ import annotations

import subprocess
from pathlib import Path

from ci.runner.console import Console
from ci.runner.control import Guard
from ci.runner.environment import input_variable
from ci.runner.metadata import Action
from ci.runner.recorder import Recorder
from ci.runner.scripts import conclude
from ci.runner.session import ActionState, Place, Scope, Session, StepFailure


def node_major(node: str) -> int | None:
    """The version of the node program here."""
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True)
        return int(done.stdout.strip().removeprefix("v").split(".")[0])
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


class JavaScript:
    """One use of a JavaScript action in a job."""

    def __init__(
        self, session: Session, action: Action, *, node: str | None, state: ActionState, scope: Scope, step_id: str
    ) -> None:
        self._session = session
        self._action = action
        self._node = node
        self._state = state
        self._scope = scope
        self._step_id = step_id

    def stage(
        self, name: str, *, inputs: dict[str, str], env: dict[str, str], console: Console, guard: Guard
    ) -> dict[str, str]:
        """Run `pre`, `main` or `post`; the outputs. Raises StepFailure."""
        action, session = self._action, self._session
        command = self._command(name, console)
        if name != "main":
            session.next_files()
        extra = session.runtime_variables()
        extra |= {input_variable(key): value for key, value in inputs.items()}
        extra |= {f"STATE_{key}": value for key, value in self._state.values.items()}
        place = Place(action.folder, action.repository, action.ref)
        variables = session.environment(self._scope, env=env, action=self._step_id, place=place, extra=extra)
        recorder = Recorder(session, console)
        try:
            ended = recorder.run(command, cwd=str(session.workspace), env=variables, guard=guard)
        finally:
            self._state.values |= recorder.state
        return conclude(ended.code, recorder, guard=guard, halted=ended.halted)

    def _command(self, stage: str, console: Console) -> list[str]:
        """The program and its arguments. Raises StepFailure."""
        if self._node is None:
            raise StepFailure(
                f"'{self._action.label}' is a JavaScript action, and this runner has no 'node' in its PATH. "
                f"Install Node.js {self._action.node} on it."
            )
        script = self._script(stage)
        if stage == "main":
            self._check_version(console)
        return [self._node, str(script)]

    def _script(self, stage: str) -> Path:
        folder = self._action.folder.resolve()
        script = (folder / str(self._action.runs[stage])).resolve()
        if (
            not script.is_relative_to(folder)
            and not script.is_relative_to(self._session.workspace.resolve())
            and not script.is_relative_to(self._session.folders.actions.resolve())
        ):
            raise StepFailure(f"'runs.{stage}' of '{self._action.label}' points out of the action")
        if not script.is_file():
            raise StepFailure(f"File not found: '{script}', the 'runs.{stage}' of '{self._action.label}'")
        return script

    def _check_version(self, console: Console) -> None:
        here, wanted = node_major(self._node or ""), self._action.node
        if here is not None and wanted is not None and here < wanted:
            console.warning(f"'{self._action.label}' asks for Node.js {wanted}; this runner has Node.js {here}.")

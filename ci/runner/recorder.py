"""What does one running program tell the runner, by its output and its files?"""

from __future__ import annotations

from typing import Any

from ci.runner import env_files
from ci.runner.commands import Interpreter
from ci.runner.console import Console
from ci.runner.control import Guard
from ci.runner.env_files import EnvFiles, FileError
from ci.runner.environment import RESERVED
from ci.runner.lines import LineReader
from ci.runner.process import TRACKING, Ended, StartError, run
from ci.runner.session import Session, StepFailure


class Recorder:
    """Runs one program for a step and gathers outputs, state, environment and problems."""

    def __init__(self, session: Session, console: Console) -> None:
        self._session = session
        self._console = console
        self.debug = console.debug
        self.outputs: dict[str, str] = {}
        self.state: dict[str, str] = {}
        self.failure: str | None = None

    def print(self, text: str) -> None:
        self._console.print(text)

    def annotate(self, annotation: dict[str, Any]) -> None:
        self._console.annotate(annotation)

    def mask(self, value: str) -> None:
        self._session.masks.add(value)

    def set_output(self, name: str, value: str) -> None:
        self.outputs[name] = value

    def save_state(self, name: str, value: str) -> None:
        self.state[name] = value

    def fail(self, message: str) -> None:
        self._console.error(message)
        self.failure = message

    def run(self, argv: list[str], *, cwd: str, env: dict[str, str], guard: Guard) -> Ended:
        """Run the program with environment files of its own and take in what it wrote. Raises StepFailure."""
        files = self._session.files
        files.create()
        interpreter = Interpreter(self, workspace=str(self._session.workspace))
        reader = LineReader(interpreter.line, slack=lambda: self._session.masks.longest)
        variables = {**env, **files.variables(), TRACKING: self._session.next_marker()}
        try:
            ended = run(argv, cwd=cwd, env=variables, output=reader.feed, guard=guard)
            reader.close()
        except StartError as error:
            raise StepFailure(str(error)) from error
        finally:
            self._take(files)
            files.remove()
        return ended

    def _take(self, files: EnvFiles) -> None:
        """Read all five files: a mistake in one does not lose the others."""
        for take in (self._take_env, self._take_output, self._take_state, self._take_path, self._take_summary):
            try:
                take(files)
            except FileError as error:
                self.fail(str(error))

    def _take_env(self, files: EnvFiles) -> None:
        found = env_files.pairs(env_files.read(files.env, "GITHUB_ENV"), "GITHUB_ENV")
        problems = env_files.blocked(found)
        for problem in problems.values():
            # An error, but as on GitHub not the end of the step.
            self._console.error(problem)
        if vain := env_files.without_effect(found, reserved=RESERVED):
            self._console.warning(f"$GITHUB_ENV cannot change what the runner sets itself: {', '.join(vain)}")
        self._session.env.update({name: value for name, value in found.items() if name not in problems})

    def _take_output(self, files: EnvFiles) -> None:
        self.outputs |= env_files.pairs(env_files.read(files.output, "GITHUB_OUTPUT"), "GITHUB_OUTPUT")

    def _take_state(self, files: EnvFiles) -> None:
        self.state |= env_files.pairs(env_files.read(files.state, "GITHUB_STATE"), "GITHUB_STATE")

    def _take_path(self, files: EnvFiles) -> None:
        for path in env_files.paths(env_files.read(files.path, "GITHUB_PATH")):
            if path in self._session.paths:
                self._session.paths.remove(path)
            self._session.paths.append(path)

    def _take_summary(self, files: EnvFiles) -> None:
        limit = env_files.SUMMARY_LIMIT * 8
        self._console.summarize(env_files.read(files.summary, "GITHUB_STEP_SUMMARY", limit=limit))

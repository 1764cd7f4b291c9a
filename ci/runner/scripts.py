"""How does a `run:` step run?"""

from __future__ import annotations

import os
from typing import Any

from ci.runner import shells
from ci.runner.console import Console
from ci.runner.control import Guard
from ci.runner.recorder import Recorder
from ci.runner.session import Scope, Session, StepFailure
from ci.runner.shells import ShellError

CYAN, PLAIN = "\x1b[36;1m", "\x1b[0m"


def run_script(
    session: Session, scope: Scope, step: dict[str, Any], *, env: dict[str, str], console: Console, guard: Guard
) -> dict[str, str]:
    """The step's outputs. Raises StepFailure, its `outputs` kept by the caller's recorder otherwise."""
    action = str(step.get("id") or "")
    contexts, functions = session.contexts(scope, env=env, action=action), session.functions(scope)
    text = session.text(step["run"], contexts, functions, what="run")
    defaults: dict[str, str] = {} if scope.composite else session.run_defaults
    given = {
        key: session.text(step.get(key) or "", contexts, functions, what=key) for key in ("shell", "working-directory")
    }
    # The defaults are evaluated already: evaluating them again would run expressions that came out of expressions.
    shell = given["shell"] or defaults.get("shell")
    cwd = os.path.join(session.workspace, given["working-directory"] or defaults.get("working-directory", ""))
    if scope.composite and not shell:
        raise StepFailure("Required property is missing: shell. A run step of a composite action must name its shell.")
    variables = session.environment(scope, env=env, action=action)
    search = shells.search_path(variables)
    try:
        command, extension = shells.template(shell, path=search)
        show(console, text, shell=command, env={**session.env, **scope.env, **env})
        script = shells.write_script(text, shell=shell, extension=extension, folder=session.folders.temp)
        argv = shells.argv(command, script=script, path=search)
    except ShellError as error:
        raise StepFailure(str(error)) from error
    except OSError as error:
        raise StepFailure(f"The script cannot be written to {session.folders.temp}: {error.strerror}") from error
    recorder = Recorder(session, console)
    try:
        ended = recorder.run(argv, cwd=cwd, env=variables, guard=guard)
    finally:
        script.unlink(missing_ok=True)
    return conclude(ended.code, recorder, guard=guard, halted=ended.halted)


def conclude(code: int, recorder: Recorder, *, guard: Guard, halted: bool) -> dict[str, str]:
    """The outputs, where the program succeeded. Raises Failed, which carries the outputs too."""
    if code != 0 or halted:
        message = None if halted else f"Process completed with exit code {code if code >= 0 else 128 - code}."
        raise Failed(message, outputs=recorder.outputs)
    if recorder.failure:
        raise Failed(None, outputs=recorder.outputs)
    return recorder.outputs


class Failed(StepFailure):
    """The step's program failed; what it put out before still counts."""

    def __init__(self, message: str | None, *, outputs: dict[str, str]) -> None:
        super().__init__(message or "")
        self.outputs = outputs


def show(console: Console, text: str, *, shell: str, env: dict[str, str]) -> None:
    """The fold at the head of a step's log: the script, its shell and the workflow's variables."""
    lines = text.rstrip().split("\n")
    console.print(f"##[group]Run {lines[0].strip()[:200]}")
    for line in lines:
        console.print(f"{CYAN}{line}{PLAIN}")
    console.print(f"shell: {shell}")
    show_env(console, env)
    console.print("##[endgroup]")


def show_env(console: Console, env: dict[str, str]) -> None:
    if env:
        console.print("env:")
        for name, value in env.items():
            console.print_all(f"  {name}: {value}")

"""Which program runs a step's script, and how?

Source of the built-in shells: GitHub docs, "Workflow syntax", jobs.<job_id>.steps[*].shell.
"""

from __future__ import annotations

import os
import shlex
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

TEMPLATES = {
    "bash": "bash --noprofile --norc -eo pipefail {0}",
    "sh": "sh -e {0}",
    "python": "python {0}",
    "pwsh": "pwsh -command . '{0}'",
    "powershell": "powershell -command . '{0}'",
    "cmd": 'cmd /D /E:ON /V:OFF /S /C "CALL "{0}""',
}
EXTENSIONS = {"bash": ".sh", "sh": ".sh", "python": ".py", "pwsh": ".ps1", "powershell": ".ps1", "cmd": ".cmd"}
POWERSHELLS = ("pwsh", "powershell")
FALLBACKS = {"python": ("python3",), "bash": ()}


class ShellError(Exception):
    """The step's shell is wrong or missing; the text is for the log."""


def template(shell: str | None, *, path: str) -> tuple[str, str]:
    """The command with {0} in it and the script's extension; `path` is the step's PATH. Raises ShellError."""
    if not shell:
        return ("bash -e {0}", ".sh") if shutil.which("bash", path=path) else ("sh -e {0}", ".sh")
    name = shell.strip()
    if name in TEMPLATES:
        return TEMPLATES[name], EXTENSIONS[name]
    if "{0}" not in name:
        raise ShellError(
            f"Invalid shell option '{name[:200]}'. Shell must be a valid built-in "
            "(bash, sh, cmd, powershell, pwsh, python) or a format string containing '{0}'"
        )
    first = Path(name.split()[0]).name
    return name, EXTENSIONS.get(first, ".sh")


def argv(command: str, *, script: Path, path: str) -> list[str]:
    """The program's arguments, the program looked up in the step's own PATH. Raises ShellError."""
    try:
        words = shlex.split(command) if not command.startswith(POWERSHELLS) else _powershell(command)
    except ValueError as error:
        raise ShellError(f"The shell '{command[:200]}' cannot be read: {error}") from error
    words = [word.replace("{0}", str(script)) for word in words]
    program = words[0]
    for name in (program, *FALLBACKS.get(program, ())):
        if found := shutil.which(name, path=path):
            return [found, *words[1:]]
    raise ShellError(
        f"{program}: command not found. This runner has no '{program}' in its PATH; install it or choose another shell."
    )


def _powershell(command: str) -> list[str]:
    """PowerShell takes its script as one argument of -command, quotes included."""
    head, found, tail = command.partition("-command ")
    return [*shlex.split(head), "-command", tail] if found else shlex.split(command)


def write_script(text: str, *, shell: str | None, extension: str, folder: Path) -> Path:
    """Put the script into a file only this user reads."""
    if shell in POWERSHELLS:
        text = (
            f"$ErrorActionPreference = 'stop'\n{text}\n"
            "if ((Test-Path -LiteralPath variable:\\LASTEXITCODE)) { exit $LASTEXITCODE }"
        )
    script = folder / f"{uuid.uuid4()}{extension}"
    descriptor = os.open(script, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="") as stream:
        stream.write(text.replace("\r\n", "\n"))
        if not text.endswith("\n"):
            stream.write("\n")
    return script


def search_path(env: Mapping[str, str]) -> str:
    return env.get("PATH") or os.defpath

"""How is the git program run? With the forge's configuration only, bounded output and a deadline."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

_CONFIG = Path(__file__).with_name("gitconfig")
# Without a home of its own git would look into the one of whoever started the server.
_NO_HOME = "/nonexistent"
_MESSAGE_BYTES = 4096
MAX_OUTPUT = 16 * 1024 * 1024  # bytes
DEADLINE = 30.0  # seconds


class GitError(Exception):
    """git said no; the message is what it wrote, at most 4 KiB."""


class OutputTooLarge(GitError):
    """git wrote more than was asked for."""


class GitTimeout(GitError):
    """git took longer than its deadline."""


def environment(config: Sequence[tuple[str, str]] = (), *, protocol: str = "") -> dict[str, str]:
    """The whole environment of a git process.

    `config` adds to forge/git/gitconfig (git: GIT_CONFIG_COUNT); `protocol` is the value of a Git-Protocol header.
    """
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        "TMPDIR": tempfile.gettempdir(),
        "HOME": _NO_HOME,
        "XDG_CONFIG_HOME": _NO_HOME,
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(_CONFIG),
        "GIT_CONFIG_COUNT": str(len(config)),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        # Anyone who may push could otherwise make one commit look like another.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }
    for number, (name, value) in enumerate(config):
        variables[f"GIT_CONFIG_KEY_{number}"] = name
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    if protocol:
        variables["GIT_PROTOCOL"] = protocol
    return variables


def run(
    path: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    max_bytes: int = MAX_OUTPUT,
    deadline: float = DEADLINE,
) -> bytes:
    """What `git <arguments>` in the bare repository at `path` writes.

    Raises GitError (exit status not 0), OutputTooLarge (more than `max_bytes`), GitTimeout (after `deadline` seconds).
    """
    output, complete = head(path, arguments, stdin=stdin, max_bytes=max_bytes, deadline=deadline)
    if not complete:
        raise OutputTooLarge(f"git {arguments[0]} wrote more than {max_bytes} bytes")
    return output


def head(
    path: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    max_bytes: int = MAX_OUTPUT,
    deadline: float = DEADLINE,
) -> tuple[bytes, bool]:
    """The first `max_bytes` bytes that git writes, and whether that was all. git is stopped when there is more.

    Raises GitError, GitTimeout.
    """
    # Files, not pipes, on two of three ends: nothing can block while the one pipe is read.
    with tempfile.TemporaryFile() as feed, tempfile.TemporaryFile() as errors:
        feed.write(stdin)
        feed.seek(0)
        process = subprocess.Popen(
            ["git", f"--git-dir={path}", *arguments],
            stdin=feed,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            env=environment(),
            start_new_session=True,
        )
        late = threading.Event()
        timer = threading.Timer(deadline, _end, [process, late])
        timer.daemon = True
        timer.start()
        with process:  # closes the pipe, then waits
            assert process.stdout is not None
            try:
                output = process.stdout.read(max_bytes + 1)
                complete = len(output) <= max_bytes
                if complete:
                    process.wait()
            finally:
                timer.cancel()
                process.kill()
        if late.is_set():
            raise GitTimeout(f"git {arguments[0]} took longer than {deadline:g} s")
        if complete and process.returncode != 0:
            errors.seek(0)
            words = errors.read(_MESSAGE_BYTES).decode("utf-8", "replace").strip()
            raise GitError(words or f"git {arguments[0]} ended with status {process.returncode}")
        return output[:max_bytes], complete


def _end(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()

"""A work tree driven by the real git program, as a person would."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Mapping
from itertools import count
from pathlib import Path

PERSON = {
    "GIT_AUTHOR_NAME": "Alice",
    "GIT_AUTHOR_EMAIL": "alice@example.org",
    "GIT_COMMITTER_NAME": "Alice",
    "GIT_COMMITTER_EMAIL": "alice@example.org",
}
# Of the first commit; each next one is a second younger. The same commits have the same SHAs in every test session.
FIRST_COMMIT = 1_767_225_600


def environment() -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        **PERSON,
    }


def noise(size: int, *, seed: int = 0) -> bytes:
    """Bytes that nobody can compress, the same ones every time."""
    return random.Random(seed).randbytes(size)


class WorkTree:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seconds = count(FIRST_COMMIT)
        folder.mkdir(parents=True, exist_ok=True)

    def git(self, *arguments: str, check: bool = True, stdin: bytes | None = None, **variables: str) -> str:
        done = self.attempt(*arguments, stdin=stdin, **variables)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def attempt(
        self, *arguments: str, stdin: bytes | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=environment() | self._next_second() | variables,
            input=None if stdin is None else stdin.decode(),
            capture_output=True,
            text=True,
            timeout=180,
        )

    def _next_second(self) -> dict[str, str]:
        now = f"{next(self._seconds)} +0000"
        return {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now}

    def start(self, branch: str = "main") -> WorkTree:
        self.git("init", "-q", f"--initial-branch={branch}")
        return self

    def commit(self, files: Mapping[str, str | bytes] | None = None, message: str = "Change") -> str:
        for path, content in (files or {}).items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

"""A git that stops where a test wants to look: a program named git, first in the server's PATH, around the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psutil

_SCRIPT = """#!/bin/sh
case "$*" in
  {pattern})
    {before}
    echo $$ > {reached}
    read answer < {released}
    {after}
    exit 0;;
esac
exec {git} "$@"
"""
_DEADLINE = 60  # seconds
_RECEIVE = '"receive-pack --stateless-rpc /"*'


class SlowGit:
    """Where it stops: `after_git` has received; `before_git` receives, all being sent; before it sends (`fetching`);
    before it names its refs to a push (`advertising`).
    """

    def __init__(self, folder: Path, where: str) -> None:
        git = shutil.which("git")
        folder.mkdir()
        self._reached, self._released = folder / "reached", folder / "released"
        os.mkfifo(self._reached)
        os.mkfifo(self._released)
        body = folder / "body"
        pattern, before, after = {
            "after_git": (_RECEIVE, f'{git} "$@"', ""),
            "before_git": (_RECEIVE, f"cat > {body}", f'{git} "$@" < {body}'),
            "fetching": ('"upload-pack --stateless-rpc /"*', f"cat > {body}", f'{git} "$@" < {body}'),
            "advertising": ("*receive-pack*--advertise-refs*", "", f'{git} "$@"'),
        }[where]
        script = folder / "git"
        script.write_text(
            _SCRIPT.format(
                pattern=pattern, before=before, after=after, git=git, reached=self._reached, released=self._released
            )
        )
        script.chmod(0o755)
        self.path = f"{folder}:{os.environ['PATH']}"

    def await_stop(self) -> psutil.Process:
        """Return when git stands still, with its process."""
        done = subprocess.run(["cat", self._reached], capture_output=True, timeout=_DEADLINE, check=True)
        return psutil.Process(int(done.stdout))

    def release(self) -> None:
        subprocess.run(["sh", "-c", 'echo "go on" > "$0"', self._released], timeout=_DEADLINE, check=True)

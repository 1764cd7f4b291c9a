"""Bare git repositories for the runner's tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Mona",
    "GIT_AUTHOR_EMAIL": "mona@example.org",
    "GIT_COMMITTER_NAME": "Mona",
    "GIT_COMMITTER_EMAIL": "mona@example.org",
    # The same commits have the same SHAs in every test session.
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(*args: str, cwd: Path) -> str:
    done = subprocess.run(
        ["git", *args], cwd=cwd, env={**os.environ, **IDENTITY}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Repository:
    """A working copy and the bare repository that it pushes to."""

    def __init__(self, root: Path, name: str) -> None:
        self.bare = root / f"{name}.git"
        self.tree = root / "trees" / name
        self.bare.mkdir(parents=True)
        self.tree.mkdir(parents=True)
        git("init", "-q", "--bare", "-b", "main", cwd=self.bare)
        git("init", "-q", "-b", "main", cwd=self.tree)
        git("remote", "add", "origin", str(self.bare), cwd=self.tree)

    def commit(self, files: dict[str, str], *, branch: str = "main", tag: str | None = None) -> str:
        """Commit and push these files; the commit's SHA."""
        for name, text in files.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git("add", "-A", cwd=self.tree)
        git("commit", "-q", "--allow-empty", "-m", "change", cwd=self.tree)
        refs = [f"HEAD:refs/heads/{branch}"]
        if tag:
            git("tag", "-f", tag, cwd=self.tree)
            refs.append(f"+refs/tags/{tag}")
        git("push", "-q", "origin", *refs, cwd=self.tree)
        return git("rev-parse", "HEAD", cwd=self.tree)

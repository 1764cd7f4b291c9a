"""Where on disk does a job live, and how is it made clean?"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


class WorkError(Exception):
    """The work folder cannot be used; the text says why and what to do."""


@dataclass(frozen=True)
class Folders:
    """The folders of one job. All but the tool cache are emptied before and after it."""

    root: Path
    pipeline: Path
    workspace: Path
    temp: Path
    actions: Path
    tool_cache: Path

    @classmethod
    def of(cls, work: Path, repository: str) -> Folders:
        owner, _, name = repository.partition("/")
        pipeline = work / _plain(owner) / _plain(name or "repository")
        return cls(
            root=work,
            pipeline=pipeline,
            workspace=pipeline / pipeline.name,
            temp=work / "_temp",
            actions=work / "_actions",
            tool_cache=work / "_tool",
        )

    def prepare(self) -> None:
        """Raises WorkError where a folder can be neither emptied nor made."""
        self.clean()
        try:
            for folder in (self.workspace, self.temp, self.actions, self.tool_cache):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WorkError(
                f"The work folder {self.root} cannot be used: {error.strerror}. Free space or give another --work."
            ) from error

    def clean(self) -> None:
        for folder in (self.pipeline, self.temp, self.actions):
            remove(folder)
        if left := [str(folder) for folder in (self.pipeline, self.temp, self.actions) if folder.exists()]:
            raise WorkError(
                f"Files of an earlier job cannot be removed from {', '.join(left)}. "
                "They may belong to another user; remove them by hand."
            )


def _plain(name: str) -> str:
    """A folder name without surprises; a leading _ or . is kept for the runner's own folders."""
    text = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100] or "x"
    return f"x{text}" if text[0] in "._" else text


def remove(path: Path) -> None:
    """Delete a file or tree, also where a job made parts of it read-only. Links are not followed."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
        return

    def again(function: Any, name: str, problem: Any) -> None:
        # Entries of a folder without write permission cannot be deleted until the folder allows it.
        with contextlib.suppress(OSError):
            parent = os.path.dirname(name)
            os.chmod(parent, stat.S_IRWXU)
            if not os.path.islink(name):
                os.chmod(name, stat.S_IRWXU)
            if os.path.isdir(name) and not os.path.islink(name):
                shutil.rmtree(name, ignore_errors=True)
            else:
                os.unlink(name)

    for _ in range(3):
        if not path.exists():
            return
        shutil.rmtree(path, onerror=again)


def lock(work: Path) -> IO[str]:
    """Make sure that no other runner uses this work folder, until the returned file is closed. Raises WorkError."""
    try:
        work.mkdir(parents=True, exist_ok=True)
        stream = (work / ".lock").open("a")
    except OSError as error:
        raise WorkError(
            f"The work folder {work} cannot be used: {error.strerror}. Give another one with --work."
        ) from error
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        stream.close()
        raise WorkError(
            f"Another runner is using the work folder {work}. Give each runner its own with --work."
        ) from error
    return stream

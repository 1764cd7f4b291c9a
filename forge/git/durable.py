"""What does git leave to the file system? The folders in which names appeared.

git flushes objects and refs (core.fsync); only once their folders are flushed too does a power cut leave them there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_CLOCK_SECONDS = 5.0  # by which a file system's time of a change may lag behind


def flush_push(path: Path, refs: Iterable[str], *, since: float) -> None:
    """Force to the disk what a push since that Unix time changed in the folders of the bare repository at `path`."""
    folders = {path, path / "objects"}
    for ref in refs:
        parent = (path / ref).parent
        while parent != path:
            folders.add(parent)
            parent = parent.parent
    with contextlib.suppress(FileNotFoundError):  # the repository was deleted meanwhile
        folders |= {folder for folder in _object_folders(path) if folder.stat().st_mtime >= since - _CLOCK_SECONDS}
    # From the inside out: a folder is found once the one around it is flushed.
    for folder in sorted(folders, key=lambda one: len(one.parts), reverse=True):
        flush(folder)


def flush_tree(path: Path) -> None:
    """Force a folder and all that is in it to the disk; its own name belongs to the folder around it."""
    for folder, _, files in os.walk(path, topdown=False):
        for name in files:
            flush(Path(folder, name))
        flush(Path(folder))


def flush(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk. What is not there any more needs it not."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _object_folders(path: Path) -> Iterator[Path]:
    with os.scandir(path / "objects") as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False) and (len(entry.name) == 2 or entry.name == "pack"):
                yield Path(entry.path)

"""How do files become a zip, and how do they come out of one without leaving its folder?"""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from ci.runner.builtin.blobs import Sink
from ci.runner.builtin.step import Failure

PIECE = 1024 * 1024

Writer = Callable[[Sink], None]


@dataclass(frozen=True)
class Entry:
    """A file and its name in the zip, with slashes."""

    path: str
    name: str


def write(sink: Sink, entries: Sequence[Entry], *, level: int) -> None:
    """Level 0 deflates too, without compressing: readers of a stream find the end of no other kind of entry.

    Raises Failure.
    """
    stream = cast("IO[bytes]", sink)
    with zipfile.ZipFile(
        stream, "w", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=level, strict_timestamps=False
    ) as archive:
        for entry in entries:
            try:
                archive.write(entry.path, entry.name)
            except (OSError, RuntimeError, UnicodeError) as problem:
                raise Failure(f"'{entry.path}' cannot be put into the artifact: {problem}") from problem


def extract(archive: Path, folder: Path) -> None:
    """Every entry below the folder, what was there replaced. Raises Failure for one that would leave it."""
    root = os.path.realpath(folder)
    try:
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                target = inside(root, entry.filename)
                if entry.is_dir():
                    os.makedirs(target, exist_ok=True)
                    continue
                os.makedirs(os.path.dirname(target), exist_ok=True)
                if os.path.lexists(target) and not os.path.isdir(target):
                    os.unlink(target)
                with opened.open(entry) as source, open(target, "xb") as copy:
                    shutil.copyfileobj(source, copy, PIECE)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as problem:
        raise Failure(f"The artifact is no zip that can be read: {problem}") from problem
    except OSError as problem:
        raise Failure(f"'{problem.filename or folder}' cannot be written: {problem.strerror or problem}") from problem


def folder_for(folder: Path, name: str) -> Path:
    """The folder of an artifact's own. Raises Failure."""
    if name in ("", ".", "..") or "/" in name:
        raise Failure(f"The artifact named '{name}' can have no folder of that name. Download it by its name.")
    return folder / name


def inside(root: str, name: str) -> str:
    """Where an entry belongs. Raises Failure."""
    names = name.rstrip("/").split("/")
    if name.startswith("/") or "\0" in name or any(part in ("", ".", "..") for part in names):
        raise Failure(f"The artifact holds the path '{name[:200]}', which is not below the folder it is extracted to.")
    target = os.path.join(root, *names)
    parent = os.path.realpath(os.path.dirname(target))
    if parent != root and not parent.startswith(f"{root.rstrip('/')}/"):
        raise Failure(f"'{name[:200]}' would be written through a link that leads out of '{root}'.")
    return target

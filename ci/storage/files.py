"""How do bytes get into Django's storage so that a row may name them, and out again piece by piece?"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import IO

from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import transaction

PIECE = 256 * 1024  # bytes

_log = logging.getLogger(__name__)


def save(name: str, source: IO[bytes]) -> str:
    """Store under `name` and force it to the disk, as a row will rely on it; the name it got."""
    stored = default_storage.save(name, File(source))
    try:
        path = default_storage.path(stored)
    except NotImplementedError:
        return stored  # not a file system: saved means stored
    folders = PurePath(stored).parents  # up to the storage's own: any of them may be new
    for flushed in (path, *(default_storage.path(str(folder)) for folder in folders)):
        descriptor = os.open(flushed, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return stored


def pieces(name: str, *, start: int, end: int) -> Iterator[bytes]:
    """The bytes from `start` to before `end`, in PIECEs. Raises FileNotFoundError; EOFError where the file is shorter.

    A storage that can fetch a range without the rest says so by a method `read_range`.
    """
    read_range = getattr(default_storage, "read_range", _read_range)
    left = end - start
    for piece in read_range(name, start, end):
        left -= len(piece)
        yield piece
    if left != 0:
        raise EOFError(f"The file {name} is {left} bytes too short.")


def _read_range(name: str, start: int, end: int) -> Iterator[bytes]:
    with default_storage.open(name, "rb") as source:
        source.seek(start)
        while start < end and (piece := source.read(min(PIECE, end - start))):
            start += len(piece)
            yield piece


def delete_after_commit(names: Iterable[str]) -> None:
    """Delete them once the caller's transaction is committed, and nothing where it is rolled back."""
    if doomed := list(names):
        transaction.on_commit(lambda: delete(doomed))


def delete(names: Iterable[str]) -> None:
    """Delete files that no row names any more. What cannot be deleted now is left to the sweep of orphans."""
    doomed = list(names)
    # A storage that can delete many in one call says so by this method.
    delete_all = getattr(default_storage, "delete_all", _delete_one_by_one)
    try:
        delete_all(doomed)
    except Exception:
        _log.exception("Files could not be deleted; a sweep will try again")


def _delete_one_by_one(names: list[str]) -> None:
    for name in names:
        try:
            default_storage.delete(name)
        except OSError:
            _log.exception("The file %s could not be deleted; a sweep will try again", name)

"""Which recorded pushes are still in the hands of a living process? Those whose lock file is held.

The lock (flock) belongs to an open file that git inherits: it lives as long as the server process or the git it
started, whichever ends last. Only then may a repair judge a push by where its ref points. All processes that serve
one set of repositories must therefore see one file system.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from django.conf import settings

_DRAFT = "new-"
_DRAFT_SECONDS = 3600


class LivePushes:
    """The lock of one push under way; list its rows before they are committed, release it when they are settled."""

    def __init__(self) -> None:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = uuid.uuid4().hex
        draft = folder / (_DRAFT + name)
        self.descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            # It gets its name once locked, so that no repair finds it unlocked.
            self._path = draft.rename(folder / name)
        except BaseException:
            os.close(self.descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    def list(self, push_ids: Iterable[int]) -> None:
        os.write(self.descriptor, json.dumps([*push_ids]).encode())

    def release(self) -> None:
        if self.descriptor >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self.descriptor)
            self.descriptor = -1


def live_push_ids() -> set[int]:
    """The rows of all pushes under way. Read the recorded rows first: a row that appears later is not asked about."""
    found: set[int] = set()
    for path in _folder().glob("*"):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not path.name.startswith(_DRAFT):
                    found.update(json.loads(file.read() or b"[]"))
                continue
            # Left behind by a process that was killed; a draft may be about to be locked.
            if not path.name.startswith(_DRAFT) or time.time() - path.stat().st_mtime > _DRAFT_SECONDS:
                path.unlink()
    return found


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "git" / "receiving"

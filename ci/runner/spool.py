"""Where do log lines wait until the forge has them?"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

SPOOL_LIMIT = 1024**3

Line = tuple[str, str]


class SpoolFull(Exception):
    """There is no room, on disk or by the limit, and the wait for it was broken off."""


class Spool:
    """A file of JSON lines between the writer (the job) and the reader (the uploader).

    Line numbers are those of the job's log. The file is emptied whenever everything in it was sent, so it stays
    small while the forge is there; when it is full the writer waits, which in turn slows the job's programs down.
    """

    def __init__(self, path: Path, *, first: int = 0, limit: int = SPOOL_LIMIT) -> None:
        self._file = path.open("w+b")
        self._limit = limit
        self._changed = threading.Condition()
        self._sent = first
        self._end = first
        self._sent_at = 0
        self._end_at = 0
        self._marks: dict[int, int] = {first: 0}

    @property
    def sent(self) -> int:
        """The first line the forge does not have."""
        return self._sent

    @property
    def end(self) -> int:
        """The number the next line will get."""
        return self._end

    def append(self, time: str, text: str, *, hurry: Callable[[], bool]) -> int:
        """Add one line and return its number. Waits while the spool is full; raises SpoolFull once `hurry()`."""
        record = json.dumps([time, text]).encode() + b"\n"
        with self._changed:
            while self._end_at - self._sent_at + len(record) > self._limit or not self._write(record):
                if hurry():
                    raise SpoolFull
                self._changed.wait(0.2)
            self._end_at += len(record)
            self._end += 1
            return self._end - 1

    def _write(self, record: bytes) -> bool:
        """False when the disk is full: what was half-written is overwritten by the next try."""
        try:
            self._file.seek(self._end_at)
            self._file.write(record)
            self._file.flush()
        except OSError:
            return False
        return True

    def batch(self, *, lines: int, size: int) -> tuple[int, list[Line]]:
        """The number of the first unsent line and the lines from it on, at most so many and so many bytes."""
        with self._changed:
            self._file.seek(self._sent_at)
            taken: list[Line] = []
            position, number = self._sent_at, self._sent
            self._marks = {number: position}
            while number < self._end and len(taken) < lines:
                record = self._file.readline()
                if taken and position + len(record) - self._sent_at > size:
                    break
                time, text = json.loads(record)
                taken.append((time, text))
                position += len(record)
                number += 1
                self._marks[number] = position
            return self._sent, taken

    def forget(self, before: int) -> None:
        """The forge has every line below `before`, which lies within or at the ends of the last batch."""
        with self._changed:
            if before not in self._marks:
                return
            self._sent, self._sent_at = before, self._marks[before]
            if self._sent == self._end:
                self._file.seek(0)
                self._file.truncate()
                self._sent_at = self._end_at = 0
                self._marks = {self._sent: 0}
            self._changed.notify_all()

    def close(self) -> None:
        self._file.close()

"""How does a person see what `manage.py up` is doing?"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Step:
    """What stands behind a step's name once it is done."""

    def __init__(self) -> None:
        self.note = ""


class Progress:
    """One line a step, written when it ends; on a terminal also while it lasts."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        encoding = stream.encoding or "ascii"
        self._done, self._failed = _marks(encoding)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        step, started = Step(), time.monotonic()
        if self._terminal:
            self._stream.write(f"  {name} ...\r")
            self._stream.flush()
        try:
            yield step
        except BaseException:
            self.say(self._failed + f" {name}")
            raise
        self.say(f"{self._done} {name:<12} {step.note} ({time.monotonic() - started:.1f} s)")

    def say(self, text: str = "") -> None:
        """Write a line; nobody reading any more is no reason to stop."""
        try:
            self._stream.write(f"\r\033[K{text}\n" if self._terminal else f"{text}\n")
            self._stream.flush()
        except (BrokenPipeError, UnicodeEncodeError):
            sys.stderr.flush()


def _marks(encoding: str) -> tuple[str, str]:
    try:
        "✓✗".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "ok", "failed:"
    return "✓", "✗"

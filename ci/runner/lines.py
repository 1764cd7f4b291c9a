"""How do bytes of a process become lines of text, in bounded memory?"""

from __future__ import annotations

from collections.abc import Callable

from ci.runner.masks import storable

LINE_LIMIT = 64 * 1024  # bytes of UTF-8, the server's limit too
CUT_NOTE = " […] (the runner cut this line at 64 KiB)"
_ROOM = LINE_LIMIT - len(CUT_NOTE.encode())
# However long a secret is, a line is never kept further than this beyond the limit.
MOST_SLACK = 256 * 1024


class LineReader:
    """Feed it bytes in any portions; it hands out whole lines without their newline.

    `emit` gets the decoded text, which may be longer than the limit by `slack()` bytes: enough to see a secret
    that straddles the cut. What lies beyond is dropped as it arrives.
    """

    def __init__(self, emit: Callable[[str], None], *, slack: Callable[[], int]) -> None:
        self._emit = emit
        self._slack = slack
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._keep(data[start:end])
            self._flush()
            start = end + 1
        self._keep(data[start:])

    def close(self) -> None:
        """The stream ended: hand out a last line without newline."""
        if self._buffer:
            self._flush()

    def _keep(self, data: bytes) -> None:
        room = LINE_LIMIT + 4 + min(self._slack(), MOST_SLACK) - len(self._buffer)
        if room > 0:
            self._buffer += data[:room]

    def _flush(self) -> None:
        text = self._buffer.decode("utf-8", "replace")
        self._buffer.clear()
        self._emit(storable(text))


def cut_position(text: str) -> int | None:
    """Characters of the text that fit a line together with the note; None where the whole text fits."""
    if len(text) * 4 <= LINE_LIMIT:
        return None
    raw = text.encode("utf-8", "replace")
    if len(raw) <= LINE_LIMIT:
        return None
    return len(raw[:_ROOM].decode("utf-8", "ignore"))


def shorten(text: str) -> str:
    """As much of the text as fits a line together with the note, and the note."""
    return text.encode("utf-8", "replace")[:_ROOM].decode("utf-8", "ignore") + CUT_NOTE

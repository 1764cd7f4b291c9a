"""Which bytes does a Range header ask for (RFC 9110, section 14)?"""

from __future__ import annotations

import re

_ONE_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")


class RangeNotSatisfiable(Exception):
    """None of the bytes asked for exist."""


def wanted(text: str, *, size: int) -> tuple[int, int] | None:
    """(start, end) of the bytes from start to before end; None for all: no range, several, or one not understood.

    Raises RangeNotSatisfiable.
    """
    found = _ONE_RANGE.fullmatch(text.replace(" ", ""))
    if found is None:
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        start, end = max(0, size - int(suffix)), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None  # not a range at all, which is ignored
    if start >= end:
        raise RangeNotSatisfiable
    return start, end

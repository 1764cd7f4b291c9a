"""Can a text be kept and shown? PostgreSQL and UTF-8 take neither NUL characters nor half a surrogate pair."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ci.workflow.problems import PlanError

UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def cleaned(text: str) -> str:
    """The text with U+FFFD for what cannot be kept, for messages."""
    return UNSTORABLE.sub("\ufffd", text)


def check(value: object, what: str) -> None:
    """Raises PlanError where a JSON-able value has such a text, as a key too. Expressions can make one: fromJSON."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            if UNSTORABLE.search(one):
                raise PlanError(f"{what} holds a NUL character or half of a surrogate pair. Remove it")
        elif isinstance(one, Mapping):
            pending.extend(one)
            pending.extend(one.values())
        elif isinstance(one, (list, tuple)):
            pending.extend(one)

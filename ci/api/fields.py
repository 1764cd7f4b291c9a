"""Which shapes do the API's fields have beyond those of the framework?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

MOST_LOG_LINES = 10_000
MOST_LOG_CHARACTERS = 8 * 1024 * 1024
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_WAIT = {"type": "number", "minimum": 0, "maximum": 50, "default": 0}


@extend_schema_field(_WAIT)
class SecondsField(serializers.Field):
    """A JSON number of seconds within bounds: no text, no truth value."""

    default_error_messages = {"invalid": "Must be a number of seconds from 0 to {largest}."}

    def __init__(self, *, largest: float, **options: Any) -> None:
        super().__init__(**options)
        self.largest = largest

    def to_internal_value(self, data: object) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not 0 <= data <= self.largest:
            self.fail("invalid", largest=self.largest)
        return float(data)

    def to_representation(self, value: float) -> float:
        return value


class CutField(serializers.CharField):
    """A text for people: what is too long is cut, as a runner cannot know how long is too long."""

    def __init__(self, *, longest: int, **options: Any) -> None:
        super().__init__(trim_whitespace=False, allow_blank=True, **options)
        self.longest = longest

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        return text if len(text) <= self.longest else text[: self.longest - 1] + "…"


@extend_schema_field(
    {
        "type": "array",
        "maxItems": MOST_LOG_LINES,
        "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}},
        "example": [["2026-11-30T12:00:00.000000Z", "Hello"]],
    }
)
class LogLinesField(serializers.Field):
    """`[[ISO time, text], …]`, checked by hand: a field object a line would cost more than storing it."""

    default_error_messages = {
        "invalid": "Must be an array of [time, text] pairs, the time as 2026-11-30T12:00:00.000Z (line {line}).",
        "too_many": "At most {largest} lines at once.",
        "too_large": "At most {largest} characters at once.",
    }

    def to_internal_value(self, data: object) -> list[tuple[str, str]]:
        if not isinstance(data, list):
            self.fail("invalid", line=0)
        if len(data) > MOST_LOG_LINES:
            self.fail("too_many", largest=MOST_LOG_LINES)
        lines = []
        for number, line in enumerate(data):
            if not _is_line(line):
                self.fail("invalid", line=number)
            lines.append((line[0], line[1]))
        if sum(len(text) for _, text in lines) > MOST_LOG_CHARACTERS:
            self.fail("too_large", largest=MOST_LOG_CHARACTERS)
        return lines

    def to_representation(self, value: Sequence[tuple[str, str]]) -> list[list[str]]:
        return [list(line) for line in value]


def _is_line(line: object) -> bool:
    return (
        isinstance(line, list)
        and len(line) == 2
        and isinstance(line[0], str)
        and isinstance(line[1], str)
        and _TIME.fullmatch(line[0]) is not None
    )

"""What does a field of a JSON message hold? As protobuf's JSON mapping has it: numbers may come as strings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ci.lifecycle.errors import InvalidInput

_LARGEST = 2**63 - 1
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)


def text(given: Mapping[str, Any], name: str) -> str:
    """ "" where it is left out. Raises InvalidInput."""
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput({name: "It must be a string."})
    return value


def number(given: Mapping[str, Any], name: str) -> int | None:
    """An int64 that is not negative; None where it is left out. Raises InvalidInput."""
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise InvalidInput({name: f"It must be a whole number from 0 to {_LARGEST}."})
    return value


def timestamp(given: Mapping[str, Any], name: str) -> datetime | None:
    """None where it is left out. Raises InvalidInput."""
    value = text(given, name)
    if not value:
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput({name: "It must be a time as 2026-01-31T12:00:00Z."}) from None


def texts(given: Mapping[str, Any], name: str, *, most: int) -> list[str]:
    """Strings, `most` at most. Raises InvalidInput."""
    value = given.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > most or not all(isinstance(one, str) for one in value):
        raise InvalidInput({name: f"It must be a list of at most {most} strings."})
    return value

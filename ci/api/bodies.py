"""Which request bodies does the API take? JSON objects of bounded size and depth that the database can store."""

from __future__ import annotations

import json
import math
from typing import Any

# Room for one log batch at its limit (8 MiB of text) with the quoting of JSON.
LARGEST_BODY = 12 * 1024 * 1024
LARGEST_SMALL_BODY = 1024 * 1024
DEEPEST = 32
_CONTAINERS = frozenset({dict, list})


class BodyError(Exception):
    """The body is refused with this HTTP status; `detail` says what to change."""

    def __init__(self, detail: str, *, status: int = 400, code: str = "invalid") -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code


def too_large(limit: int) -> BodyError:
    return BodyError(f"The body is larger than {limit} bytes. Send less at once.", status=413, code="too_large")


def parse_object(raw: bytes, *, any_text: bool = False) -> dict[str, Any]:
    """The JSON object in `raw`; nothing at all is an empty object.

    `any_text` lets NUL characters and half surrogate pairs through, for log lines, which are cleaned and never refused.
    Raises BodyError.
    """
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise BodyError(f"The body is not UTF-8 (byte {error.start + 1}).") from None
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BodyError(f"The body is not JSON: {error.msg} ({where}).") from None
    except ValueError as error:
        raise BodyError(f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise BodyError(f"The body must be a JSON object, not {_kind(value)}.")
    _check(value, any_text=any_text or b"\\u" not in raw)
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _check(value: dict[str, Any], *, any_text: bool) -> None:
    """Depth, and text that PostgreSQL cannot store. Level by level, as recursion has a limit of its own."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                if not any_text:
                    for key in item:
                        _check_text(key)
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            elif not any_text and isinstance(item, str):
                _check_text(item)
        if not inner or (any_text and _CONTAINERS.isdisjoint(map(type, inner))):
            return
        level = inner
    raise _too_deep()


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BodyError("The body has a text with a NUL character, which cannot be stored. Remove it.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise BodyError("The body has a text with half a surrogate pair, which is no Unicode character. Remove it.")


def _too_deep() -> BodyError:
    return BodyError(f"The body is nested deeper than {DEEPEST} levels.")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return {bool: "a truth value", str: "a string", list: "an array"}.get(type(value), "a number")

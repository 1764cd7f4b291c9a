"""How do values become JSON text and JSON text values?

toJSON writes as GitHub does: two spaces, numbers with 15 digits, the line separators of Unicode escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ci.workflow.expressions.coercion import fold, is_array, is_object, plain_number, to_string
from ci.workflow.expressions.errors import ExpressionError
from ci.workflow.expressions.memory import TEXT_OVERHEAD, Memory, exceeded

MAX_JSON_DEPTH = 100
_MAX_WRITTEN_DEPTH = 1000
_LONGEST_EXACT_INTEGER = 15
_ESCAPED_SEPARATORS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_quote = json.encoder.encode_basestring


def _read_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_EXACT_INTEGER else plain_number(float(digits))


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _read_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Keys that differ in case only are one key: the first spelling and the last value stay."""
    result = dict(pairs)
    if len({fold(key) for key in result}) == len(result):
        return result
    spelling: dict[str, str] = {}
    merged: dict[str, object] = {}
    for key, value in pairs:
        merged[spelling.setdefault(fold(key), key)] = value
    return merged


_decoder = json.JSONDecoder(parse_int=_read_integer, parse_constant=_refuse_constant, object_pairs_hook=_read_object)


def read(text: str) -> object:
    """The value of a JSON text, nested at most 100 deep. Raises ExpressionError (evaluation)."""
    if not text.strip():
        raise ExpressionError("Error parsing fromJson: the text is empty", stage="evaluation")
    try:
        value: object = _decoder.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ExpressionError(f"Error parsing fromJson: {error.msg} ({place})", stage="evaluation") from None
    except ValueError as error:
        raise ExpressionError(f"Error parsing fromJson: {error}", stage="evaluation") from None
    except RecursionError:
        raise _too_deep() from None
    if _deeper_than(value, MAX_JSON_DEPTH):
        raise _too_deep()
    return value


def _too_deep() -> ExpressionError:
    message = f"Error parsing fromJson: the text is nested more than {MAX_JSON_DEPTH} levels deep"
    return ExpressionError(message, stage="evaluation")


def _deeper_than(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [child for parent in level for child in _collections_in(parent)]
        if not level:
            return False
    return True


def _collections_in(value: object) -> list[object]:
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, (dict, list))]
    if isinstance(value, list):
        return [item for item in value if isinstance(item, (dict, list))]
    return []


def write(value: object, memory: Memory) -> str:
    """The JSON text of a value. Raises ExpressionError (evaluation) beyond what ``memory`` allows."""
    writer = _Writer(memory.limit)
    writer.write(value)
    memory.spend(writer.size)
    return "".join(writer.pieces)


@dataclass(slots=True)
class _Level:
    """A collection that is being written, and what of it is still to come."""

    items: Iterator[object]
    mapping: Mapping[object, object] | None
    is_empty: bool = True


class _Writer:
    """Writes without recursion, so that no nesting can exhaust Python's stack."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.pieces: list[str] = []
        self.levels: list[_Level] = []

    def write(self, value: object) -> None:
        self._value("", value)
        while self.levels:
            level = self.levels[-1]
            try:
                item = next(level.items)
            except StopIteration:
                self.levels.pop()
                self._add("\n" + "  " * len(self.levels) + ("]" if level.mapping is None else "}"))
                continue
            lead = ("\n" if level.is_empty else ",\n") + "  " * len(self.levels)
            level.is_empty = False
            if level.mapping is None:
                self._value(lead, item)
            else:
                self._add(lead + quote(to_string(item)))
                self._value(": ", level.mapping[item])

    def _value(self, lead: str, value: object) -> None:
        if value and is_object(value):
            assert isinstance(value, Mapping)
            self._open(lead + "{", _Level(iter(list(value)), value))
        elif value and is_array(value):
            assert isinstance(value, (list, tuple))
            self._open(lead + "[", _Level(iter(value), None))
        else:
            self._add(lead + _scalar(value))

    def _open(self, text: str, level: _Level) -> None:
        if len(self.levels) >= _MAX_WRITTEN_DEPTH:
            message = f"toJSON was given a value nested more than {_MAX_WRITTEN_DEPTH} levels deep"
            raise ExpressionError(message, stage="evaluation")
        self._add(text)
        self.levels.append(level)

    def _add(self, piece: str) -> None:
        # GitHub's count: every piece is a string of its own.
        self.size += TEXT_OVERHEAD + 2 * len(piece)
        if self.size > self.limit:
            raise exceeded()
        self.pieces.append(piece)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return quote(value)
    if is_array(value):
        return "[]"
    text = to_string(value)
    return "{}" if text == "Object" else text


def quote(text: str) -> str:
    """The text as a JSON string, as Newtonsoft.Json writes it."""
    quoted: str = _quote(text)
    return quoted if text.isascii() else quoted.translate(_ESCAPED_SEPARATORS)

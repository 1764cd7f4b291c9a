"""How do values become JSON text and JSON text values?

toJSON writes as GitHub does: two spaces, numbers with 15 digits, the line separators of Unicode escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ci.workflow.expressions.coercion import fold, is_array, is_object, plain_number, to_string
from ci.workflow.expressions.errors import ExpressionError
from ci.workflow.expressions.memory import TEXT_OVERHEAD, exceeded

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


def write(value: object, limit: int) -> str:
    """The JSON text of a value. Raises ExpressionError (evaluation) beyond ``limit`` bytes (see memory)."""
    pieces: list[str] = []
    size = 0
    for piece in _pieces(value):
        size += TEXT_OVERHEAD + 2 * len(piece)
        if size > limit:
            raise exceeded()
        pieces.append(piece)
    return "".join(pieces)


def _pieces(value: object) -> Iterator[str]:
    """The text in pieces, each of them what GitHub counts as one string."""
    levels: list[tuple[Iterator[object], Mapping[object, object] | None]] = []
    indent = ""
    lead = ""
    while True:
        if is_object(value) and value:
            assert isinstance(value, Mapping)
            yield lead + "{"
            levels.append((iter(list(value)), value))
        elif is_array(value) and value:
            assert isinstance(value, (list, tuple))
            yield lead + "["
            levels.append((iter(list(value)), None))
        else:
            yield lead + _scalar(value)
        if len(levels) > _MAX_WRITTEN_DEPTH:
            raise ExpressionError(
                f"toJSON was given a value nested more than {_MAX_WRITTEN_DEPTH} levels deep", stage="evaluation"
            )
        comma = "" if len(levels) * 2 > len(indent) else ","
        indent = "  " * len(levels)
        while levels:
            items, mapping = levels[-1]
            try:
                item = next(items)
            except StopIteration:
                levels.pop()
                indent = "  " * len(levels)
                comma = ","
                yield f"\n{indent}{'}' if mapping is not None else ']'}"
                continue
            lead = f"{comma}\n{indent}"
            if mapping is None:
                value = item
            else:
                yield lead + quote(to_string(item))
                lead = ": "
                value = mapping[item]
            break
        else:
            return


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

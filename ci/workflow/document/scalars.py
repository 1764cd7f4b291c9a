"""Which value does an untagged or tagged YAML scalar have?"""

from __future__ import annotations

import math
import re

from ci.workflow.document.nodes import ScalarValue

_WORDS: dict[str, ScalarValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})
# What a number or one of these words begins with: most texts do not, and need no closer look.
_STARTS = frozenset("+-.0123456789~nNtTfF")
_TAG = "tag:yaml.org,2002:"
# A double holds every integer up to here; beyond, GitHub's numbers lose digits and so do ours.
_EXACT = 2**53
# Longer digit strings overflow or underflow any double; int() of them would cost quadratic time.
_MAX_DIGITS = 400


class ScalarError(ValueError):
    """A tag that is not supported, or a text that does not fit its tag."""


def resolve(text: str) -> ScalarValue:
    """The value of a plain scalar by the YAML 1.2 core schema: `on`, `yes` and `12_345` are strings."""
    if text and text[0] not in _STARTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    number = _number(text)
    return text if number is None else number


def resolve_tagged(text: str, tag: str) -> ScalarValue:
    """The value of a scalar with an explicit tag. Raises ScalarError with GitHub's wording."""
    short = tag.removeprefix(_TAG)
    if short == "str" or tag == "!":
        return text
    if not tag.startswith(_TAG) or short not in {"null", "bool", "int", "float"}:
        raise ScalarError(f"Unexpected tag '{tag}'")
    value = resolve(text)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = number and float(str(value)).is_integer()
    fits = {"null": value is None, "bool": isinstance(value, bool), "int": whole, "float": number}
    if not fits[short]:
        raise ScalarError(f"The value '{text}' is invalid for the type '{tag}'")
    return value


def _number(text: str) -> int | float | None:
    if _HEX.fullmatch(text) or _OCTAL.fullmatch(text):
        base = 16 if text[1] == "x" else 8
        return _double(float("inf") if len(text) > _MAX_DIGITS else int(text[2:], base))
    if _INTEGER.fullmatch(text):
        return _double(float(text) if len(text) > 15 else int(text))
    if _FLOAT.fullmatch(text):
        return _double(float(text))
    if match := _INFINITY.fullmatch(text):
        return -math.inf if match[1] == "-" else math.inf
    return math.nan if text in _NAN else None


def _double(value: int | float) -> int | float:
    """The double nearest to a number, infinite beyond its range; an int where a double holds it exactly."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return int(number) if number.is_integer() and abs(number) <= _EXACT and not _negative_zero(number) else number


def _negative_zero(number: float) -> bool:
    return number == 0 and math.copysign(1, number) < 0

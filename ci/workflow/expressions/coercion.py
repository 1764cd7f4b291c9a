"""How do values turn into truth, text and numbers, and when are two values equal or ordered?

The rules are those of GitHub docs, "Evaluate expressions in workflows and actions" (operators), in the reading of
actions/runner's EvaluationResult: objects and arrays are never coerced, text compares without regard to case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal

# Characters .NET's Char.IsWhiteSpace accepts. Python's str.isspace also takes U+001C to U+001F, which GitHub refuses.
WHITESPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACES = re.compile(f"[{WHITESPACE}]*+")
_TRIMMABLE = WHITESPACE.replace("\u2000-\u200a", "".join(map(chr, range(0x2000, 0x200B))))

_DECIMAL = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_HEX = re.compile(r"0x([0-9a-fA-F]++)")
_OCTAL = re.compile(r"0o([0-7]++)")
_INFINITY = {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_LARGEST_EXACT = 2**53
_FOLD_AS_NUMBER = (bool, int, float, Decimal)


class _UpperCase(dict[int, int]):
    """Upper case one character at a time, as .NET's OrdinalIgnoreCase: no character grows into two, and none crosses
    the border between ASCII and the rest (dotless i and long s stay themselves)."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        upper = character.upper()
        if len(upper) != 1:
            upper = character.title()
        result = ord(upper) if len(upper) == 1 else code
        if (result < 128) != (code < 128):
            result = code
        self[code] = result
        return result


_UPPER_CASE = _UpperCase()


class FilteredArray(list[object]):
    """The result of an object filter ``.*``: an index on it applies to each of its items."""


def fold(text: str) -> str:
    """The text with case differences removed; never longer or shorter than the text."""
    upper = text.upper()
    if text.isascii() or (len(upper) == len(text) and "\u0131" not in text and "\u017f" not in text):
        return upper
    return text.translate(_UPPER_CASE)


def trim(text: str) -> str:
    """The text without the white space GitHub ignores around it."""
    return text.strip(_TRIMMABLE)


def is_object(value: object) -> bool:
    return type(value) is dict or isinstance(value, Mapping)


def is_array(value: object) -> bool:
    return isinstance(value, (list, tuple))


def is_primitive(value: object) -> bool:
    return value is None or isinstance(value, (str, bool, int, float, Decimal))


def truthy(value: object) -> bool:
    """Is the value true? False are null, false, 0, NaN and the empty text; ``'false'`` and ``'0'`` are true."""
    if value:
        return type(value) is not float or value == value
    return not is_primitive(value)


def to_string(value: object) -> str:
    """The text of a value: numbers with 15 significant digits (.NET's G15), collections as their kind's name."""
    if type(value) is int and -(10**15) < value < 10**15:
        return str(value)
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, (int, float, Decimal)):
        return _number_text(value)
    return "Array" if is_array(value) else "Object"


def _number_text(value: int | float | Decimal) -> str:
    number = as_float(value)
    if number == 0:
        return "0"
    if number != number:
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return f"{number:.15g}".replace("e", "E")


def as_float(value: int | float | Decimal) -> float:
    """The double nearest to a number; integers beyond its range become infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:
        return math.nan


def parse_number(text: str) -> float:
    """The number a text stands for, NaN where it stands for none; blank text is 0.

    Hexadecimal and octal are read into 32 bits as actions/runner's ExpressionUtility.ParseNumber does: what is
    longer is no number, and the highest bit is the sign.
    """
    text = trim(text)
    if not text:
        return 0.0
    if _DECIMAL.fullmatch(text):
        return float(text)
    for pattern, base in ((_HEX, 16), (_OCTAL, 8)):
        found = pattern.fullmatch(text)
        if found:
            digits = found[1].lstrip("0")
            bits = int(digits, base) if 0 < len(digits) <= 11 else (0 if not digits else 2**32)
            if bits >= 2**32:
                return math.nan
            return float(bits if bits < 2**31 else bits - 2**32)
    return _INFINITY.get(text, math.nan)


def plain_number(number: float) -> int | float:
    """The number as an int where that loses nothing."""
    if number.is_integer() and abs(number) < _LARGEST_EXACT and (number or math.copysign(1, number) > 0):
        return int(number)
    return number


def to_number(value: object) -> float:
    """The number of a value: null 0, true 1, false 0, text by its digits; collections are NaN."""
    if value is None:
        return 0.0
    if isinstance(value, str):
        return parse_number(value)
    if isinstance(value, _FOLD_AS_NUMBER):
        return as_float(value)
    return math.nan


def equal(left: object, right: object) -> bool:
    """GitHub's ``==``: text without case, different kinds as numbers, collections only when the very same."""
    if isinstance(left, str) and isinstance(right, str):
        return left == right or (len(left) == len(right) and fold(left) == fold(right))
    if left is None and right is None:
        return True
    if is_primitive(left) and is_primitive(right):
        return to_number(left) == to_number(right)
    return left is right


def less(left: object, right: object) -> bool:
    """GitHub's ``<``; always false for NaN, for two nulls and for collections."""
    if isinstance(left, str) and isinstance(right, str):
        decisive = min(len(left), len(right)) + 1
        return _ordered(left[:decisive]) < _ordered(right[:decisive])
    if (left is None and right is None) or not (is_primitive(left) and is_primitive(right)):
        return False
    return to_number(left) < to_number(right)


def _ordered(text: str) -> bytes:
    # .NET orders UTF-16 units: characters beyond U+FFFF sort below U+E000. Big-endian bytes keep that order.
    return fold(text).encode("utf-16-be", "surrogatepass")

"""Which symbols is an expression made of?

The grammar is that of GitHub docs, "Evaluate expressions in workflows and actions" (literals and operators).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from ci.workflow.expressions.coercion import WHITESPACE, parse_number, plain_number
from ci.workflow.expressions.errors import ExpressionError, located

_BOUNDARY = r"()\[\],.!><=&|"
_SPACE = re.compile(f"[{WHITESPACE}]*+")
_WORD = re.compile(f"[^{_BOUNDARY}{WHITESPACE}]*+")
_NUMBER = re.compile(f"[^{_BOUNDARY.replace('.', '')}{WHITESPACE}]*+")
_STRING = re.compile("'[^']*+(?:''[^']*+)*+'")
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_-]*+")
_OPERATORS = frozenset(("==", "!=", ">=", "<=", "&&", "||", "!", ">", "<"))
_CONSTANTS: dict[str, bool | float | None] = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
}


class Kind(Enum):
    START = auto()
    GROUP = auto()
    PARAMETERS = auto()
    BRACKET = auto()
    CLOSE = auto()
    CLOSE_BRACKET = auto()
    SEPARATOR = auto()
    DOT = auto()
    WILDCARD = auto()
    BRACKET_WILDCARD = auto()
    OPERATOR = auto()
    LITERAL = auto()
    PROPERTY = auto()
    FUNCTION = auto()
    NAME = auto()


# After these an operand begins, so a dot there begins a number such as .5 and is no property access.
BEFORE_OPERAND = frozenset((Kind.START, Kind.SEPARATOR, Kind.GROUP, Kind.BRACKET, Kind.PARAMETERS, Kind.OPERATOR))
_PUNCTUATION = {"(": Kind.GROUP, "[": Kind.BRACKET, ")": Kind.CLOSE, "]": Kind.CLOSE_BRACKET, ",": Kind.SEPARATOR}


@dataclass(frozen=True, slots=True)
class Token:
    """One symbol; ``index`` counts characters from 0."""

    kind: Kind
    text: str
    index: int
    value: bool | int | float | str | None = None


def tokens(source: str) -> Iterator[Token]:
    """The symbols of ``source`` in order.

    Raises ExpressionError (lexing) when the reader reaches something that is no symbol.
    """
    index = 0
    last = Kind.START
    while True:
        index = _skip_space(source, index)
        if index >= len(source):
            return
        token = _read(source, index, last)
        yield token
        last = token.kind
        index += len(token.text)


def _skip_space(source: str, index: int) -> int:
    found = _SPACE.match(source, index)
    return found.end() if found else index


def _read(source: str, index: int, last: Kind) -> Token:
    character = source[index]
    if character in _PUNCTUATION:
        kind = _PUNCTUATION[character]
        if kind is Kind.GROUP and last is Kind.FUNCTION:
            kind = Kind.PARAMETERS
        return Token(kind, character, index)
    if character == "*":
        return Token(Kind.BRACKET_WILDCARD if last is Kind.BRACKET else Kind.WILDCARD, character, index)
    if character == "'":
        return _read_string(source, index)
    if character in "!><=&|":
        return _read_operator(source, index)
    if character == "." and last not in BEFORE_OPERAND:
        return Token(Kind.DOT, character, index)
    if character in ".+-0123456789":
        return _read_number(source, index)
    return _read_word(source, index, last)


def _read_string(source: str, index: int) -> Token:
    found = _STRING.match(source, index)
    if found is None:
        raise _unexpected(source, index, source[index:])
    return Token(Kind.LITERAL, found[0], index, found[0][1:-1].replace("''", "'"))


def _read_operator(source: str, index: int) -> Token:
    for length in (2, 1):
        text = source[index : index + length]
        if text in _OPERATORS:
            return Token(Kind.OPERATOR, text, index)
    raise _unexpected(source, index, source[index] + _rest(_WORD, source, index))


def _read_number(source: str, index: int) -> Token:
    text = source[index] + _rest(_NUMBER, source, index)
    number = parse_number(text)
    if number != number:
        raise _unexpected(source, index, text)
    return Token(Kind.LITERAL, text, index, plain_number(number))


def _read_word(source: str, index: int, last: Kind) -> Token:
    text = source[index] + _rest(_WORD, source, index)
    if not _NAME.fullmatch(text):
        raise _unexpected(source, index, text)
    if last is Kind.DOT:
        return Token(Kind.PROPERTY, text, index)
    if text in _CONSTANTS:
        return Token(Kind.LITERAL, text, index, _CONSTANTS[text])
    following = _skip_space(source, index + len(text))
    return Token(Kind.FUNCTION if source[following : following + 1] == "(" else Kind.NAME, text, index)


def _rest(pattern: re.Pattern[str], source: str, index: int) -> str:
    found = pattern.match(source, index + 1)
    return found[0] if found else ""


def _unexpected(source: str, index: int, text: str) -> ExpressionError:
    return located("Unexpected symbol", symbol=text, source=source, index=index, stage="lexing")

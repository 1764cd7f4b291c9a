"""Which symbols is an expression made of?

The grammar is that of GitHub docs, "Evaluate expressions in workflows and actions" (literals and operators).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum, auto
from typing import NamedTuple

from ci.workflow.expressions.coercion import WHITESPACE, parse_number, plain_number
from ci.workflow.expressions.errors import ExpressionError, located

_BOUNDARY = rf"()\[\],.!><=&|{WHITESPACE}"
_NAME = "[A-Za-z_][A-Za-z0-9_-]*+"
# Possessive throughout: no text makes the matching go back over itself.
_SYMBOL = re.compile(
    rf"""[{WHITESPACE}]*+(?:
        (?P<function>{_NAME}(?=[{WHITESPACE}]*+\())
      | (?P<name>{_NAME}(?![^{_BOUNDARY}]))
      | (?P<punctuation>[()\[\],])
      | (?P<operator>==|!=|>=|<=|&&|\|\||[><])
      | (?P<string>'[^']*+(?:''[^']*+)*+')
      | (?P<bang>!)
      | (?P<dot>\.)
      | (?P<star>\*)
      | (?P<number>[+\-0-9])
      | (?P<unclosed>')
      | (?P<unknown>.)
    )?""",
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(f".[^{_BOUNDARY}]*+", re.DOTALL)
_NUMBER = re.compile(f".[^{_BOUNDARY.replace('.', '')}]*+", re.DOTALL)
_CONSTANTS: dict[str, bool | float | None] = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
}


class Kind(IntEnum):
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
    NOT = auto()
    LITERAL = auto()
    PROPERTY = auto()
    FUNCTION = auto()
    NAME = auto()


# After these an operand begins, so a dot there begins a number such as .5 and is no property access.
BEFORE_OPERAND = frozenset(
    (Kind.START, Kind.SEPARATOR, Kind.GROUP, Kind.BRACKET, Kind.PARAMETERS, Kind.OPERATOR, Kind.NOT)
)
_PUNCTUATION = {"(": Kind.GROUP, "[": Kind.BRACKET, ")": Kind.CLOSE, "]": Kind.CLOSE_BRACKET, ",": Kind.SEPARATOR}


class Token(NamedTuple):
    """One symbol; ``start`` counts characters from 0."""

    kind: Kind
    text: str
    start: int
    value: bool | int | float | str | None = None


def tokens(source: str) -> Iterator[Token]:
    """The symbols of ``source`` in order.

    Raises ExpressionError (lexing) when the reader reaches something that is no symbol.
    """
    index = 0
    last = Kind.START
    while True:
        found = _SYMBOL.match(source, index)
        group = found.lastgroup if found else None
        if found is None or group is None:
            return
        index = found.start(group)
        token = _token(group, found[group], source, index, last)
        yield token
        last = token.kind
        index += len(token.text)


def _token(group: str, text: str, source: str, index: int, last: Kind) -> Token:
    match group:
        case "name" | "function":
            if last is Kind.DOT:
                return Token(Kind.PROPERTY, text, index)
            if text in _CONSTANTS:
                return Token(Kind.LITERAL, text, index, _CONSTANTS[text])
            return Token(Kind.NAME if group == "name" else Kind.FUNCTION, text, index)
        case "dot" if last not in BEFORE_OPERAND:
            return Token(Kind.DOT, text, index)
        case "punctuation":
            kind = Kind.PARAMETERS if text == "(" and last is Kind.FUNCTION else _PUNCTUATION[text]
            return Token(kind, text, index)
        case "operator":
            return Token(Kind.OPERATOR, text, index)
        case "string":
            return Token(Kind.LITERAL, text, index, text[1:-1].replace("''", "'"))
        case "bang":
            return Token(Kind.NOT, text, index)
        case "star":
            return Token(Kind.BRACKET_WILDCARD if last is Kind.BRACKET else Kind.WILDCARD, text, index)
        case "number" | "dot":
            return _number(source, index)
    raise _unexpected(source, index, source[index:] if group == "unclosed" else _run(_WORD, source, index))


def _number(source: str, index: int) -> Token:
    text = _run(_NUMBER, source, index)
    number = parse_number(text)
    if number != number:
        raise _unexpected(source, index, text)
    return Token(Kind.LITERAL, text, index, plain_number(number))


def _run(pattern: re.Pattern[str], source: str, index: int) -> str:
    found = pattern.match(source, index)
    return found[0] if found else source[index]


def _unexpected(source: str, index: int, text: str) -> ExpressionError:
    return located("Unexpected symbol", symbol=text, source=source, index=index, stage="lexing")

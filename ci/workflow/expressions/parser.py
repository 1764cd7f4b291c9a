"""What does an expression mean: which tree do its symbols form, and which names does it use?

Operator precedence as in GitHub docs, "Evaluate expressions in workflows and actions" (operators). The parser keeps
its own stack, so that no nesting in the text can exhaust Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ci.workflow.expressions.coercion import fold
from ci.workflow.expressions.errors import ExpressionError, located, units_before
from ci.workflow.expressions.lexer import BEFORE_OPERAND, Kind, Token, tokens
from ci.workflow.expressions.names import BUILT_INS, UNFINISHED_CALL, check_arity
from ci.workflow.expressions.nodes import (
    And,
    Call,
    Comparison,
    Index,
    Literal,
    NamedValue,
    Node,
    Not,
    Or,
    Reference,
    Wildcard,
)

MAX_LENGTH = 21_000
MAX_DEPTH = 50

_PRECEDENCE = {">": 11, ">=": 11, "<": 11, "<=": 11, "==": 10, "!=": 10, "&&": 6, "||": 5}
_DOT_PRECEDENCE = 19
_NOT_PRECEDENCE = 16
_INDEXABLE = frozenset((Kind.CLOSE, Kind.CLOSE_BRACKET, Kind.WILDCARD, Kind.PROPERTY, Kind.NAME))
_AFTER_OPERAND = _INDEXABLE | {Kind.LITERAL}
_DOT_ONLY = frozenset((Kind.DOT,))
# Which symbols may come before one of this kind.
_LEGAL_AFTER: Mapping[Kind, frozenset[Kind]] = {
    Kind.GROUP: BEFORE_OPERAND,
    Kind.PARAMETERS: frozenset((Kind.FUNCTION,)),
    Kind.BRACKET: _INDEXABLE,
    Kind.CLOSE: _AFTER_OPERAND | {Kind.PARAMETERS},
    Kind.CLOSE_BRACKET: _AFTER_OPERAND | {Kind.BRACKET_WILDCARD},
    Kind.SEPARATOR: _AFTER_OPERAND,
    Kind.DOT: _INDEXABLE,
    Kind.WILDCARD: _DOT_ONLY,
    Kind.BRACKET_WILDCARD: frozenset((Kind.BRACKET,)),
    Kind.OPERATOR: _AFTER_OPERAND,
    Kind.NOT: BEFORE_OPERAND,
    Kind.LITERAL: BEFORE_OPERAND,
    Kind.PROPERTY: _DOT_ONLY,
    Kind.FUNCTION: BEFORE_OPERAND,
    Kind.NAME: BEFORE_OPERAND,
}
_OPENING = frozenset((Kind.GROUP, Kind.PARAMETERS, Kind.BRACKET))
_UNFINISHED = frozenset((Kind.OPERATOR, Kind.NOT, Kind.DOT, Kind.SEPARATOR, Kind.FUNCTION)) | _OPENING


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed expression; ``root`` is None for a blank one. ``references`` are in the order of the text."""

    source: str
    root: Node | None
    references: tuple[Reference, ...]


class SyntaxFailure(ExpressionError):
    """A syntax error, with the names read before it: an unknown one of them is the error to report first."""

    def __init__(self, error: ExpressionError, references: tuple[Reference, ...]) -> None:
        super().__init__(error.message, stage=error.stage, position=error.position, index=error.index)
        self.references = references


@dataclass(slots=True)
class _Operator:
    kind: Kind
    text: str
    precedence: int
    base: int = 0  # operands below this one belong to what surrounds the function call
    reference: int = 0  # where a call's Reference lies


def parse_tree(source: str) -> Tree:
    """The tree of ``source`` (without ``${{ }}``), names unchecked.

    Raises SyntaxFailure (lexing or parsing), at most 21,000 UTF-16 units long and 50 levels deep.
    """
    parser = _Parser(source)
    try:
        root = parser.parse()
    except ExpressionError as error:
        raise SyntaxFailure(error, tuple(parser.references)) from None
    return Tree(source, root, tuple(parser.references))


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.operands: list[Node] = []
        self.operators: list[_Operator] = []
        self.references: list[Reference] = []
        self.last: Token | None = None

    def parse(self) -> Node | None:
        check_length(self.source)
        last = Kind.START
        for token in tokens(self.source):
            kind = token.kind
            if last not in _LEGAL_AFTER[kind]:
                raise self._error("Unexpected symbol", token)
            self._PUSH[kind](self, token)
            self.last = token
            last = kind
        if self.last is None:
            return None
        if self.last.kind in _UNFINISHED or any(operator.kind in _OPENING for operator in self.operators):
            raise self._error("Unexpected end of expression", self.last)
        self._reduce_above(0)
        return self.operands[0]

    def _error(self, description: str, token: Token) -> ExpressionError:
        return located(description, symbol=token.text, source=self.source, index=token.start, stage="parsing")

    def _push_literal(self, token: Token) -> None:
        self.operands.append(Literal(token.value))

    def _push_property(self, token: Token) -> None:
        self.operands.append(Literal(token.text))

    def _push_wildcard(self, token: Token) -> None:
        self.operands.append(Wildcard())

    def _push_name(self, token: Token) -> None:
        self.references.append(Reference(token.text, token.start))
        self.operands.append(NamedValue(token.text))

    def _push_function(self, token: Token) -> None:
        self.references.append(Reference(token.text, token.start, UNFINISHED_CALL))

    def _push_dot(self, token: Token) -> None:
        self._reduce_above(_DOT_PRECEDENCE)
        self.operators.append(_Operator(Kind.DOT, token.text, _DOT_PRECEDENCE))

    def _push_not(self, token: Token) -> None:
        # The only operator that binds to its right: nothing before it is finished by it.
        self.operators.append(_Operator(Kind.NOT, token.text, _NOT_PRECEDENCE))

    def _push_operator(self, token: Token) -> None:
        precedence = _PRECEDENCE[token.text]
        self._reduce_above(precedence)
        self.operators.append(_Operator(Kind.OPERATOR, token.text, precedence))

    def _open(self, token: Token) -> None:
        if token.kind is Kind.BRACKET:
            self._reduce_above(_DOT_PRECEDENCE)
        opened = _Operator(token.kind, token.text, 0, len(self.operands), len(self.references) - 1)
        self.operators.append(opened)

    def _close(self, token: Token) -> None:
        self._reduce_above(0)
        opened = self.operators[-1].kind if self.operators else Kind.START
        match token.kind:
            case Kind.SEPARATOR:
                legal = opened is Kind.PARAMETERS
            case Kind.CLOSE_BRACKET:
                legal = opened is Kind.BRACKET
            case _:
                legal = opened in (Kind.PARAMETERS, Kind.GROUP)
        if not legal:
            raise self._error("Unexpected symbol", token)
        if token.kind is Kind.SEPARATOR:
            return
        operator = self.operators.pop()
        if operator.kind is Kind.BRACKET:
            self._reduce_index()
        elif operator.kind is Kind.PARAMETERS:
            self._reduce_call(operator)

    def _reduce_above(self, precedence: int) -> None:
        """Finish the operators on top that bind at least as tightly; an opened bracket stops it."""
        while self.operators:
            top = self.operators[-1]
            if top.kind in _OPENING or top.precedence < precedence:
                return
            self.operators.pop()
            if top.kind is Kind.DOT:
                self._reduce_index()
            elif top.kind is Kind.NOT:
                operand = self.operands.pop()
                self._add(Not(operand, depth=operand.depth + 1))
            else:
                self._reduce_binary(top.text)

    def _reduce_index(self) -> None:
        key = self.operands.pop()
        target = self.operands.pop()
        self._add(Index(target, key, depth=max(target.depth, key.depth) + 1))

    def _reduce_call(self, operator: _Operator) -> None:
        arguments = tuple(self.operands[operator.base :])
        del self.operands[operator.base :]
        reference = self.references[operator.reference]
        reference = Reference(reference.name, reference.start, len(arguments))
        self.references[operator.reference] = reference
        limits = BUILT_INS.get(fold(reference.name))
        if limits is not None:
            check_arity(self.source, reference, limits)
        self._add(Call(reference.name, arguments, depth=max((node.depth for node in arguments), default=0) + 1))

    def _reduce_binary(self, text: str) -> None:
        right = self.operands.pop()
        left = self.operands.pop()
        if text not in ("&&", "||"):
            self._add(Comparison(text, left, right, depth=max(left.depth, right.depth) + 1))
            return
        kind = And if text == "&&" else Or
        operands: tuple[Node, ...] = ()
        depth = 0
        for node in (left, right):
            # GitHub counts a && b && c as one level, however it is grouped.
            if isinstance(node, kind):
                operands += node.operands
                depth = max(depth, node.depth)
            else:
                operands += (node,)
                depth = max(depth, node.depth + 1)
        self._add(kind(operands, depth=depth))

    def _add(self, node: Node) -> None:
        if node.depth > MAX_DEPTH:
            raise ExpressionError(f"Exceeded max expression depth {MAX_DEPTH}", stage="parsing")
        self.operands.append(node)

    _PUSH: ClassVar[dict[Kind, Callable[[_Parser, Token], None]]] = {
        Kind.LITERAL: _push_literal,
        Kind.PROPERTY: _push_property,
        Kind.WILDCARD: _push_wildcard,
        Kind.BRACKET_WILDCARD: _push_wildcard,
        Kind.NAME: _push_name,
        Kind.FUNCTION: _push_function,
        Kind.OPERATOR: _push_operator,
        Kind.NOT: _push_not,
        Kind.DOT: _push_dot,
        Kind.GROUP: _open,
        Kind.PARAMETERS: _open,
        Kind.BRACKET: _open,
        Kind.CLOSE: _close,
        Kind.CLOSE_BRACKET: _close,
        Kind.SEPARATOR: _close,
    }


def check_length(source: str) -> None:
    """Raises ExpressionError (parsing) beyond 21,000 UTF-16 units."""
    length = len(source)
    if length <= MAX_LENGTH and (length <= MAX_LENGTH // 2 or source.isascii()):
        return
    if units_before(source, length) > MAX_LENGTH:
        raise ExpressionError(f"Exceeded max expression length {MAX_LENGTH}", stage="parsing")

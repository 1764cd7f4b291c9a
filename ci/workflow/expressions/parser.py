"""What does an expression mean: which tree do its symbols form, and which names does it use?

Operator precedence as in GitHub docs, "Evaluate expressions in workflows and actions" (operators). The parser keeps
its own stack, so that no nesting in the text can exhaust Python's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ci.workflow.expressions.coercion import fold
from ci.workflow.expressions.errors import ExpressionError, located
from ci.workflow.expressions.lexer import BEFORE_OPERAND, Kind, Token, tokens
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
MAX_ARGUMENTS = 255
UNFINISHED_CALL = -1

# Name in upper case -> fewest and most arguments.
BUILT_INS: Mapping[str, tuple[int, int]] = {
    "CASE": (3, MAX_ARGUMENTS),
    "CONTAINS": (2, 2),
    "ENDSWITH": (2, 2),
    "FORMAT": (1, MAX_ARGUMENTS),
    "FROMJSON": (1, 1),
    "JOIN": (1, 2),
    "STARTSWITH": (2, 2),
    "TOJSON": (1, 1),
}

_PRECEDENCE = {"!": 16, ">": 11, ">=": 11, "<": 11, "<=": 11, "==": 10, "!=": 10, "&&": 6, "||": 5}
_DOT_PRECEDENCE = 19
_INDEXABLE = frozenset((Kind.CLOSE, Kind.CLOSE_BRACKET, Kind.WILDCARD, Kind.PROPERTY, Kind.NAME))
_AFTER_OPERAND = _INDEXABLE | {Kind.LITERAL}
_DOT_ONLY = frozenset((Kind.DOT,))
# Which symbols may come before one of this kind.
_LEGAL_AFTER: Mapping[Kind, frozenset[Kind]] = {
    Kind.GROUP: BEFORE_OPERAND,
    Kind.PARAMETERS: frozenset((Kind.FUNCTION,)),
    Kind.BRACKET: _INDEXABLE,
    Kind.CLOSE: _AFTER_OPERAND,
    Kind.CLOSE_BRACKET: _AFTER_OPERAND | {Kind.BRACKET_WILDCARD},
    Kind.SEPARATOR: _AFTER_OPERAND,
    Kind.DOT: _INDEXABLE,
    Kind.WILDCARD: _DOT_ONLY,
    Kind.BRACKET_WILDCARD: frozenset((Kind.BRACKET,)),
    Kind.OPERATOR: _AFTER_OPERAND,
    Kind.LITERAL: BEFORE_OPERAND,
    Kind.PROPERTY: _DOT_ONLY,
    Kind.FUNCTION: BEFORE_OPERAND,
    Kind.NAME: BEFORE_OPERAND,
}
_OPENING = frozenset((Kind.GROUP, Kind.PARAMETERS, Kind.BRACKET))
_UNFINISHED = frozenset((Kind.OPERATOR, Kind.DOT, Kind.SEPARATOR, Kind.FUNCTION)) | _OPENING


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed expression; ``root`` is None for a blank one. ``references`` are in the order of the text."""

    source: str
    root: Node | None
    references: tuple[Reference, ...]


class SyntaxFailure(ExpressionError):
    """A syntax error, with the names read before it: an unknown one of them is the error to report first."""

    def __init__(self, error: ExpressionError, references: tuple[Reference, ...]) -> None:
        super().__init__(error.message, stage=error.stage, position=error.position)
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
        for token in tokens(self.source):
            self._check_order(token)
            self._push(token)
            self.last = token
        if self.last is None:
            return None
        if self.last.kind in _UNFINISHED or any(operator.kind in _OPENING for operator in self.operators):
            raise self._error("Unexpected end of expression", self.last)
        self._reduce_above(0)
        return self.operands[0]

    def _error(self, description: str, token: Token | Reference) -> ExpressionError:
        symbol = token.text if isinstance(token, Token) else token.name
        return located(description, symbol=symbol, source=self.source, index=token.index, stage="parsing")

    def _check_order(self, token: Token) -> None:
        last = self.last.kind if self.last else Kind.START
        if token.kind is Kind.OPERATOR and token.text == "!":
            legal = last in BEFORE_OPERAND
        else:
            legal = last in _LEGAL_AFTER[token.kind]
        if not legal and not (token.kind is Kind.CLOSE and last is Kind.PARAMETERS):
            raise self._error("Unexpected symbol", token)

    def _push(self, token: Token) -> None:
        match token.kind:
            case Kind.LITERAL:
                self.operands.append(Literal(token.value))
            case Kind.PROPERTY:
                self.operands.append(Literal(token.text))
            case Kind.WILDCARD | Kind.BRACKET_WILDCARD:
                self.operands.append(Wildcard())
            case Kind.NAME:
                self.references.append(Reference(token.text, token.index))
                self.operands.append(NamedValue(token.text))
            case Kind.FUNCTION:
                self.references.append(Reference(token.text, token.index, UNFINISHED_CALL))
            case Kind.OPERATOR:
                self._push_operator(token)
            case Kind.DOT:
                self._reduce_above(_DOT_PRECEDENCE)
                self.operators.append(_Operator(Kind.DOT, ".", _DOT_PRECEDENCE))
            case Kind.CLOSE | Kind.CLOSE_BRACKET | Kind.SEPARATOR:
                self._close(token)
            case _:
                self._open(token)

    def _push_operator(self, token: Token) -> None:
        precedence = _PRECEDENCE[token.text]
        if token.text != "!":  # the only operator that binds to its right
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
            elif top.text == "!":
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
        reference = Reference(reference.name, reference.index, len(arguments))
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


def check_length(source: str) -> None:
    """Raises ExpressionError (parsing) beyond 21,000 UTF-16 units."""
    length = len(source)
    if length <= MAX_LENGTH and (length <= MAX_LENGTH // 2 or source.isascii()):
        return
    if length + sum(1 for character in source if character > "\uffff") > MAX_LENGTH:
        raise ExpressionError(f"Exceeded max expression length {MAX_LENGTH}", stage="parsing")


def check_arity(source: str, reference: Reference, limits: tuple[int, int]) -> None:
    """Raises ExpressionError (parsing) where a call has too few or too many arguments."""
    count = reference.arguments
    if count is None or count == UNFINISHED_CALL:
        return
    if count < limits[0]:
        description = "Too few parameters supplied"
    elif count > limits[1]:
        description = "Too many parameters supplied"
    elif count % 2 == 0 and fold(reference.name) == "CASE":
        description = "Even number of parameters supplied, requires an odd number of parameters"
    else:
        return
    raise located(description, symbol=reference.name, source=source, index=reference.index, stage="parsing")


def check_references(
    source: str,
    references: Collection[Reference],
    *,
    contexts: Collection[str] | None,
    functions: Mapping[str, tuple[int, int]] | None,
) -> None:
    """Raises ExpressionError (parsing) for the first name that is no context or function of this place.

    None allows any; names compare without case. ``functions`` are those beside the built-in ones.
    """
    known = None if contexts is None else {fold(name) for name in contexts}
    callable_here = None if functions is None else {fold(name): limits for name, limits in functions.items()}
    for reference in references:
        name = fold(reference.name)
        if reference.arguments is None:
            if known is not None and name not in known:
                raise _unrecognized("named-value", reference, source)
        elif name not in BUILT_INS and callable_here is not None:
            if name not in callable_here:
                raise _unrecognized("function", reference, source)
            check_arity(source, reference, callable_here[name])


def _unrecognized(what: str, reference: Reference, source: str) -> ExpressionError:
    return located(f"Unrecognized {what}", symbol=reference.name, source=source, index=reference.index, stage="parsing")

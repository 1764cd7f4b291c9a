"""What is a parsed expression made of?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """A part of an expression. ``depth`` is the height of the tree below and including it (GitHub allows 50).

    Parsed trees are cached and shared: nobody changes a node. (Frozen ones take three times as long to make.)
    """

    depth: int = field(default=1, kw_only=True, compare=False, repr=False)


@dataclass(slots=True)
class Literal(Node):
    value: bool | int | float | str | None


@dataclass(slots=True)
class NamedValue(Node):
    name: str


@dataclass(slots=True)
class Wildcard(Node):
    """The ``*`` of an object filter."""


@dataclass(slots=True)
class Index(Node):
    """``target.key``, ``target[key]``, ``target.*``."""

    target: Node
    key: Node


@dataclass(slots=True)
class Call(Node):
    name: str
    arguments: tuple[Node, ...]


@dataclass(slots=True)
class Not(Node):
    operand: Node


@dataclass(slots=True)
class Comparison(Node):
    """``operator`` is one of == != < <= > >=."""

    operator: str
    left: Node
    right: Node


@dataclass(slots=True)
class And(Node):
    operands: tuple[Node, ...]


@dataclass(slots=True)
class Or(Node):
    operands: tuple[Node, ...]


@dataclass(slots=True)
class Reference:
    """A named-value or function an expression mentions; ``arguments`` is None for a named-value."""

    name: str
    start: int
    arguments: int | None = None


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Index(target, key):
            return (target, key)
        case Call(_, arguments):
            return arguments
        case Not(operand):
            return (operand,)
        case Comparison(_, left, right):
            return (left, right)
        case And(operands) | Or(operands):
            return operands
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it, outermost first."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))

"""What does a YAML file hold, and at which line and column?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

ScalarValue: TypeAlias = "bool | int | float | str | None"


@dataclass(slots=True, eq=False)
class Node:
    """A value with its place: `line` and `column` from 1, `weight` the nodes it stands for with aliases expanded,
    `size` an estimate in bytes of the same, `height` how many levels of collections it holds."""

    line: int
    column: int
    weight: int = field(default=1, kw_only=True)
    size: int = field(default=24, kw_only=True)
    height: int = field(default=0, kw_only=True)


@dataclass(slots=True, eq=False)
class Scalar(Node):
    """`value` after the YAML 1.2 core schema, `text` GitHub's text of it (a number with 15 significant digits)."""

    value: ScalarValue
    text: str


@dataclass(slots=True, eq=False)
class Sequence(Node):
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Mapping(Node):
    """Pairs in the order of the file. A mapping's place is that of its first key, or of its brace, as GitHub counts."""

    pairs: list[tuple[Scalar, Node]] = field(default_factory=list)
    _values: dict[str, Node] | None = field(default=None, init=False, repr=False)

    def get(self, key: str) -> Node | None:
        """The value of `key`, compared as GitHub does: without regard to case. Asked only once all pairs are there."""
        if self._values is None:
            # Keys are read once, the first of two alike counts.
            self._values = {name.text.casefold(): value for name, value in reversed(self.pairs)}
        return self._values.get(key) or self._values.get(key.casefold())

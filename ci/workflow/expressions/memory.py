"""How much may one evaluation build?

The measure is that of actions/runner's MemoryCounter and EvaluationMemory: a text costs 26 bytes and two a UTF-16
unit, a reference in a filtered array 8. What an operator or function consumed is given back once it has its result.
"""

from __future__ import annotations

from ci.workflow.expressions.errors import ExpressionError

EXPRESSION_LIMIT = 1024 * 1024
RESULT_LIMIT = 10 * 1024 * 1024
TEXT_OVERHEAD = 26
ITEM_BYTES = 8
OBJECT_BYTES = 24
# A hostile expression builds again what was given back, or searches the same long value a thousand times: all that
# is ever built or looked through is bounded too, by what takes a few seconds at worst.
WORK_LIMIT = 64 * 1024 * 1024
_VISIT_BYTES = 32
_LONG = 1024


class Memory:
    """The bytes one evaluation holds, and all it ever built or looked through."""

    __slots__ = ("held", "limit", "work")

    def __init__(self, limit: int) -> None:
        self.held = 0
        self.work = 0
        self.limit = limit

    def settle(self, before: int, size: int) -> None:
        """A result of ``size`` bytes replaces all that was held since ``before``. Raises ExpressionError."""
        self.held = before + size
        self.spend(size)
        if self.held > self.limit:
            raise exceeded()

    def spend(self, size: int) -> None:
        """Count work that leaves nothing behind. Raises ExpressionError."""
        self.work += size
        if self.work > WORK_LIMIT:
            raise exceeded()

    def read(self, *values: object) -> None:
        """Count the texts among ``values`` that are long enough to take time."""
        for value in values:
            if isinstance(value, str) and len(value) > _LONG:
                self.spend(4 * len(value))

    def visit(self, count: int) -> None:
        """Count ``count`` items or keys looked at one by one."""
        if count > _VISIT_BYTES:
            self.spend(_VISIT_BYTES * count)


def exceeded() -> ExpressionError:
    return ExpressionError(
        "The maximum allowed memory size was exceeded while evaluating the expression", stage="evaluation"
    )


def text_bytes(text: str) -> int:
    return TEXT_OVERHEAD + 2 * len(text)


def value_bytes(value: object) -> int:
    return text_bytes(value) if isinstance(value, str) else OBJECT_BYTES

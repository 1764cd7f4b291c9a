"""What went wrong in an expression, and where?"""

from __future__ import annotations

from typing import Literal

Stage = Literal["lexing", "parsing", "evaluation"]


class ExpressionError(Exception):
    """An expression that cannot be read or evaluated.

    ``stage`` is the step that failed: "lexing", "parsing" or "evaluation". ``position`` counts UTF-16 units from 1
    over the whole expression, as GitHub's messages do, and ``index`` characters from 0 for who has the text as
    Python holds it; both are None where no single place is at fault.
    """

    def __init__(self, message: str, *, stage: Stage, position: int | None = None, index: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.stage: Stage = stage
        self.position = position
        self.index = index


def located(description: str, *, symbol: str, source: str, index: int, stage: Stage) -> ExpressionError:
    """The error GitHub words for a symbol at ``index`` (0-based, in characters) of ``source``."""
    position = units_before(source, index) + 1
    message = f"{description}: '{symbol}'. Located at position {position} within expression: {source}"
    return ExpressionError(message, stage=stage, position=position, index=index)


def units_before(text: str, index: int) -> int:
    """How many UTF-16 units the first ``index`` characters of ``text`` are."""
    return index + sum(1 for character in text[:index] if character > "\uffff")

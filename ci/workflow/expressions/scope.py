"""What does one evaluation see, and what does it hold?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ci.workflow.expressions.memory import Memory, text_bytes, value_bytes

Function = Callable[..., object]


class Scope:
    """What one evaluation sees: values and functions by the spelling the expression uses, and its memory."""

    __slots__ = ("functions", "memory", "values")

    def __init__(self, values: Mapping[str, object], functions: Mapping[str, Function], limit: int) -> None:
        self.values = values
        self.functions = functions
        self.memory = Memory(limit)


Run = Callable[[Scope], object]


def releasing(run: Run) -> Run:
    """``run``, giving back the memory of what it consumed."""

    def release(scope: Scope) -> object:
        before = scope.memory.held
        value = run(scope)
        if scope.memory.held != before:
            scope.memory.settle(before, value_bytes(value))
        return value

    return release


def building(run: Callable[[Scope], str]) -> Run:
    """A function that makes a text: its size counts, what it consumed is given back."""

    def build(scope: Scope) -> object:
        memory = scope.memory
        before = memory.held
        text = run(scope)
        memory.settle(before, text_bytes(text))
        return text

    return build

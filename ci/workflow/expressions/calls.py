"""How is a function called: which of its arguments are evaluated, and when?

Evaluation is lazy where GitHub's is: the arguments of case and format, the separator of join, what contains looks for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ci.workflow.expressions import functions as built_in
from ci.workflow.expressions import json_text
from ci.workflow.expressions.coercion import fold, is_array, is_primitive, to_string
from ci.workflow.expressions.errors import ExpressionError
from ci.workflow.expressions.memory import text_bytes
from ci.workflow.expressions.scope import Function, Run, Scope, building, releasing


def call(name: str, arguments: list[Run]) -> Run:
    """A function that evaluates a call. Their number is already checked for the built-in functions."""
    match fold(name):
        case "CASE":
            return releasing(_case(arguments))
        case "CONTAINS":
            return releasing(_contains(*arguments))
        case "STARTSWITH":
            return releasing(_edge(built_in.starts_with, *arguments))
        case "ENDSWITH":
            return releasing(_edge(built_in.ends_with, *arguments))
        case "FORMAT":
            return building(_format(arguments[0], arguments[1:]))
        case "JOIN":
            return building(_join(*arguments))
        case "TOJSON":
            value = arguments[0]
            return building(lambda scope: json_text.write(value(scope), scope.memory))
        case "FROMJSON":
            return releasing(_from_json(arguments[0]))
    return releasing(_extra(name, arguments))


def _case(arguments: list[Run]) -> Run:
    pairs = tuple(zip(arguments[:-1:2], arguments[1::2], strict=True))
    default = arguments[-1]

    def run(scope: Scope) -> object:
        for predicate, result in pairs:
            value = predicate(scope)
            if value is True:
                return result(scope)
            if value is not False:
                raise ExpressionError("case predicate must evaluate to a boolean value", stage="evaluation")
        return default(scope)

    return run


def _contains(search: Run, wanted: Run) -> Run:
    def run(scope: Scope) -> object:
        value = search(scope)
        if is_primitive(value):
            scope.memory.read(value)
            return built_in.contains_text(value, wanted(scope))
        if is_array(value) and value:
            assert isinstance(value, (list, tuple))
            scope.memory.visit(len(value))
            item = wanted(scope)
            if isinstance(item, str):
                scope.memory.read(item, *(each for each in value if isinstance(each, str) and len(each) == len(item)))
            return built_in.contains_item(value, item)
        return False

    return run


def _edge(matches: Callable[[object, object], bool], text: Run, edge: Run) -> Run:
    def run(scope: Scope) -> object:
        whole = text(scope)
        wanted = edge(scope)
        scope.memory.read(wanted)
        return matches(whole, wanted)

    return run


def _format(template: Run, arguments: list[Run]) -> Callable[[Scope], str]:
    count = len(arguments)

    def run(scope: Scope) -> str:
        texts: dict[int, str] = {}

        def argument(number: int) -> str:
            text = texts.get(number)
            if text is None:
                text = texts[number] = to_string(arguments[number](scope))
            return text

        return built_in.format_text(to_string(template(scope)), count, argument, scope.memory.limit)

    return run


def _join(items: Run, separator: Run = lambda scope: ",") -> Callable[[Scope], str]:
    def run(scope: Scope) -> str:
        value = items(scope)
        if isinstance(value, (list, tuple)):
            scope.memory.visit(len(value))
        return built_in.join(value, lambda: separator(scope), scope.memory.limit)

    return run


def _from_json(text: Run) -> Run:
    def run(scope: Scope) -> object:
        source = to_string(text(scope))
        scope.memory.spend(text_bytes(source))
        return json_text.read(source)

    return run


def _extra(name: str, arguments: list[Run]) -> Run:
    """A function the caller gave. Its own ExpressionError passes through."""

    def run(scope: Scope) -> object:
        values = [argument(scope) for argument in arguments]
        function = scope.functions[name]
        try:
            return function(*values)
        except TypeError:
            if _accepts(function, values):
                raise
        message = f"{name} was called with {len(values)} arguments, which it does not take"
        raise ExpressionError(message, stage="evaluation")

    return run


def _accepts(function: Function, values: list[object]) -> bool:
    try:
        inspect.signature(function).bind(*values)
    except (TypeError, ValueError):
        return False
    return True

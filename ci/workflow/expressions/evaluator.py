"""What is the value of an expression?

A tree is turned into Python closures once; evaluating it is then a few calls. Evaluation is lazy where GitHub's is:
the right side of && and ||, the arguments of case and format, the separator of join.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from ci.workflow.expressions import functions as built_in
from ci.workflow.expressions import json_text
from ci.workflow.expressions.coercion import equal, fold, is_array, is_primitive, less, to_string, truthy
from ci.workflow.expressions.errors import ExpressionError
from ci.workflow.expressions.lookup import MISSING, find, item, values_of
from ci.workflow.expressions.memory import ITEM_BYTES, Memory, text_bytes, value_bytes
from ci.workflow.expressions.nodes import And, Call, Comparison, Index, Literal, NamedValue, Node, Not, Or, Wildcard

Function = Callable[..., object]


class Scope:
    """What one evaluation sees: values and functions by the spelling the expression uses, and its memory."""

    __slots__ = ("functions", "memory", "values")

    def __init__(self, values: Mapping[str, object], functions: Mapping[str, Function], limit: int) -> None:
        self.values = values
        self.functions = functions
        self.memory = Memory(limit)


Run = Callable[[Scope], object]


def compile_tree(node: Node | None) -> Run:
    """A function that evaluates the tree in a Scope. It raises ExpressionError (evaluation) only."""
    if node is None:
        return _constant(None)
    match node:
        case Literal(value):
            return _constant(value)
        case NamedValue(name):
            return lambda scope: scope.values[name]
        case Index(_, Literal(str())):
            return _properties(node)
        case Index(target, Wildcard()):
            return _filter(compile_tree(target))
        case Index(target, key):
            return _index(compile_tree(target), compile_tree(key))
        case Not(operand):
            run = compile_tree(operand)
            return _releasing(node, lambda scope: not truthy(run(scope)))
        case And(operands):
            return _releasing(node, _logical([compile_tree(part) for part in operands], stop_at=False))
        case Or(operands):
            return _releasing(node, _logical([compile_tree(part) for part in operands], stop_at=True))
        case Comparison(operator, left, right):
            return _releasing(node, _comparison(operator, left, right))
        case Call(name, arguments):
            return _call(node, name, [compile_tree(argument) for argument in arguments])
    raise AssertionError(f"no rule for {type(node).__name__}")


def _constant(value: object) -> Run:
    return lambda scope: value


def _properties(node: Index) -> Run:
    """``a.b.c`` as one step: the keys are known, so their folds are too."""
    keys: list[tuple[str, str]] = []
    target: Node = node
    while isinstance(target, Index) and isinstance(target.key, Literal) and isinstance(target.key.value, str):
        keys.append((target.key.value, fold(target.key.value)))
        target = target.target
    keys.reverse()
    start = compile_tree(target)
    path = tuple(keys)

    def run(scope: Scope) -> object:
        value = start(scope)
        for key, folded in path:
            if type(value) is dict:
                found = value.get(key, MISSING)
                if found is MISSING:
                    found = find(value, key, folded)
                value = None if found is MISSING else found
            else:
                value = item(value, key)
        return value

    return run


def _index(target: Run, key: Run) -> Run:
    return lambda scope: item(target(scope), key(scope))


def _filter(target: Run) -> Run:
    return lambda scope: values_of(target(scope), scope.memory)


def _releasing(node: Node, run: Run) -> Run:
    """``run``, giving back the memory of what it consumed; untouched where nothing below can build anything."""
    if not _builds(node):
        return run

    def release(scope: Scope) -> object:
        before = scope.memory.held
        value = run(scope)
        if scope.memory.held != before:
            scope.memory.settle(before, value_bytes(value))
        return value

    return release


def _builds(node: Node) -> bool:
    match node:
        case Call() | Wildcard():
            return True
        case Index(target, key):
            return _builds(target) or _builds(key)
        case Not(operand):
            return _builds(operand)
        case Comparison(_, left, right):
            return _builds(left) or _builds(right)
        case And(operands) | Or(operands):
            return any(_builds(operand) for operand in operands)
        case _:
            return False


def _logical(operands: list[Run], *, stop_at: bool) -> Run:
    first, last = tuple(operands[:-1]), operands[-1]

    def run(scope: Scope) -> object:
        for operand in first:
            value = operand(scope)
            if truthy(value) is stop_at:
                return value
        return last(scope)

    return run


def _comparison(operator: str, left_node: Node, right_node: Node) -> Run:
    left, right = compile_tree(left_node), compile_tree(right_node)
    match operator:
        case "==" if isinstance(right_node, Literal) and isinstance(right_node.value, str):
            return _equal_text(left, right_node.value, same=True)
        case "!=" if isinstance(right_node, Literal) and isinstance(right_node.value, str):
            return _equal_text(left, right_node.value, same=False)
        case "==":
            return lambda scope: equal(left(scope), right(scope))
        case "!=":
            return lambda scope: not equal(left(scope), right(scope))
        case "<":
            return lambda scope: less(left(scope), right(scope))
        case ">":
            # The left side is evaluated first all the same.
            return lambda scope: _greater(left(scope), right(scope))
    if operator == "<=":
        return lambda scope: _at_most(left(scope), right(scope))
    return lambda scope: _at_least(left(scope), right(scope))


def _greater(left: object, right: object) -> bool:
    return less(right, left)


def _at_most(left: object, right: object) -> bool:
    return equal(left, right) or less(left, right)


def _at_least(left: object, right: object) -> bool:
    return equal(left, right) or less(right, left)


def _equal_text(left: Run, text: str, *, same: bool) -> Run:
    """A comparison with a literal text, by far the commonest."""
    folded = fold(text)
    length = len(text)

    def run(scope: Scope) -> object:
        value = left(scope)
        if type(value) is str:
            return (value == text or (len(value) == length and fold(value) == folded)) is same
        return equal(value, text) is same

    return run


def _call(node: Call, name: str, arguments: list[Run]) -> Run:
    match fold(name):
        case "CASE":
            return _releasing(node, _case(arguments))
        case "CONTAINS":
            return _releasing(node, _contains(*arguments))
        case "STARTSWITH":
            text, start = arguments
            return _releasing(node, lambda scope: built_in.starts_with(text(scope), start(scope)))
        case "ENDSWITH":
            text, end = arguments
            return _releasing(node, lambda scope: built_in.ends_with(text(scope), end(scope)))
        case "FORMAT":
            return _building(_format(arguments[0], arguments[1:]))
        case "JOIN":
            return _building(_join(*arguments))
        case "TOJSON":
            value = arguments[0]
            return _building(lambda scope: json_text.write(value(scope), scope.memory.limit))
        case "FROMJSON":
            return _releasing(node, _from_json(arguments[0]))
    return _releasing(node, _extra(name, arguments))


def _building(run: Callable[[Scope], str]) -> Run:
    """A function that makes a text: its size counts, what it consumed is given back."""

    def build(scope: Scope) -> object:
        memory = scope.memory
        before = memory.held
        text = run(scope)
        memory.settle(before, text_bytes(text))
        return text

    return build


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
            return built_in.contains_text(value, wanted(scope))
        if is_array(value) and value:
            assert isinstance(value, (list, tuple))
            scope.memory.spend(ITEM_BYTES * len(value))
            return built_in.contains_item(value, wanted(scope))
        return False

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
    return lambda scope: built_in.join(items(scope), lambda: separator(scope), scope.memory.limit)


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

"""What is the value of an expression?

A tree is turned into Python closures once; evaluating it is then a few calls.
"""

from __future__ import annotations

from collections.abc import Callable

from ci.workflow.expressions.calls import call
from ci.workflow.expressions.coercion import equal, fold, is_primitive, less, truthy
from ci.workflow.expressions.lookup import MISSING, find, item, values_of
from ci.workflow.expressions.nodes import And, Call, Comparison, Index, Literal, NamedValue, Node, Not, Or, Wildcard
from ci.workflow.expressions.scope import Run, Scope, releasing


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
            return call(name, [compile_tree(argument) for argument in arguments])
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
    if len(keys) == 1 and isinstance(target, NamedValue):
        return _member(target.name, *keys[0])
    start = compile_tree(target)
    path = tuple(keys)

    def run(scope: Scope) -> object:
        value = start(scope)
        for key, folded in path:
            if type(value) is dict:
                found = value.get(key, MISSING)
                if found is MISSING:
                    found = find(value, key, folded, scope.memory)
                value = None if found is MISSING else found
            else:
                value = item(value, key, scope.memory)
        return value

    return run


def _member(name: str, key: str, folded: str) -> Run:
    """``a.b``, the commonest of all expressions."""

    def run(scope: Scope) -> object:
        value = scope.values[name]
        if type(value) is not dict:
            return item(value, key, scope.memory)
        found = value.get(key, MISSING)
        if found is MISSING:
            found = find(value, key, folded, scope.memory)
        return None if found is MISSING else found

    return run


def _index(target: Run, key: Run) -> Run:
    def run(scope: Scope) -> object:
        value = target(scope)
        # GitHub does not look at the key where there is nothing to look into.
        return None if is_primitive(value) else item(value, key(scope), scope.memory)

    return run


def _filter(target: Run) -> Run:
    return lambda scope: values_of(target(scope), scope.memory)


def _releasing(node: Node, run: Run) -> Run:
    """Accounting only where something below can build something: most expressions cannot."""
    return releasing(run) if _builds(node) else run


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
    relation = _RELATIONS[operator]

    def run(scope: Scope) -> object:
        first = left(scope)
        second = right(scope)
        if type(first) is str or type(second) is str:
            _read(first, second, scope)
        return relation(first, second)

    return run


def _read(left: object, right: object, scope: Scope) -> None:
    """Two texts are compared no further than the shorter one reaches; other values need the whole text's number."""
    if isinstance(left, str) and isinstance(right, str):
        scope.memory.read(left if len(left) < len(right) else right)
    else:
        scope.memory.read(left, right)


def _unequal(left: object, right: object) -> bool:
    return not equal(left, right)


def _greater(left: object, right: object) -> bool:
    return less(right, left)


def _at_most(left: object, right: object) -> bool:
    return equal(left, right) or less(left, right)


def _at_least(left: object, right: object) -> bool:
    return equal(left, right) or less(right, left)


_RELATIONS: dict[str, Callable[[object, object], bool]] = {
    "==": equal,
    "!=": _unequal,
    "<": less,
    ">": _greater,
    "<=": _at_most,
    ">=": _at_least,
}


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

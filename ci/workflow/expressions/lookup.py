"""What does a name or index find in a value?

Property names compare without case, except in ExactNames; what is not there is null. An index on the result of an
object filter applies to each of its items (GitHub docs, "Evaluate expressions in workflows and actions").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ci.workflow.expressions.coercion import (
    FilteredArray,
    fold,
    is_array,
    is_object,
    is_primitive,
    to_number,
    to_string,
)
from ci.workflow.expressions.memory import ITEM_BYTES, OBJECT_BYTES, Memory

_LARGEST_INDEX = 2**31 - 1


class ExactNames(dict[str, object]):
    """An object whose names have a case, as `env` on a runner whose system tells PATH from Path."""

    __slots__ = ()


class _Missing:
    __slots__ = ()


MISSING: Final = _Missing()


def find(values: Mapping[str, object], key: str, folded: str, memory: Memory | None = None) -> object:
    """The value under ``key`` in any case, or MISSING; an exact spelling wins. ``folded`` is the key's fold.

    Raises ExpressionError when the evaluation, whose ``memory`` this is, has searched too much.
    """
    value = values.get(key, MISSING)
    if value is not MISSING or isinstance(values, ExactNames):
        return value
    if memory is not None:
        memory.visit(len(values))
    for name in values:
        if isinstance(name, str) and len(name) == len(folded) and fold(name) == folded:
            return values[name]
    return MISSING


def item(target: object, key: object, memory: Memory) -> object:
    """``target[key]``: null where there is no such property or item. Raises ExpressionError after too much work."""
    memory.read(key)
    if isinstance(target, FilteredArray):
        memory.visit(len(target))
        return _each(target, key, memory)
    value = _one(target, key, memory)
    return None if value is MISSING else value


def _one(target: object, key: object, memory: Memory) -> object:
    if is_object(target):
        if not is_primitive(key):
            return MISSING
        assert isinstance(target, Mapping)
        name = to_string(key)
        return find(target, name, fold(name), memory)
    if is_array(target):
        assert isinstance(target, (list, tuple))
        number = to_number(key)
        if 0 <= number <= _LARGEST_INDEX and math.floor(number) < len(target):
            found: object = target[math.floor(number)]
            return found
    return MISSING


def _each(items: FilteredArray, key: object, memory: Memory) -> FilteredArray:
    found = (_one(each, key, memory) for each in items)
    return FilteredArray(value for value in found if value is not MISSING)


def values_of(target: object, memory: Memory) -> FilteredArray:
    """``target.*``. Raises ExpressionError when the evaluation has built too much."""
    sources = target if isinstance(target, FilteredArray) else [target]
    result = FilteredArray()
    memory.visit(len(sources))
    for source in sources:
        if is_object(source):
            assert isinstance(source, Mapping)
            result.extend(source.values())
        elif is_array(source):
            assert isinstance(source, (list, tuple))
            result.extend(source)
        if OBJECT_BYTES + ITEM_BYTES * len(result) > memory.limit:
            break
    memory.settle(memory.held, OBJECT_BYTES + ITEM_BYTES * len(result))
    return result

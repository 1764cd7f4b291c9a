"""Which combinations does a matrix make?

The rules are those of GitHub's MatrixBuilder: cross product with the first key slowest, then exclude, then include."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ci.workflow.expressions import equal

MAX_LEGS = 256
# A matrix may be larger before `exclude`; comparing with all excludes and includes must still end soon.
_MAX_COMPARISONS = 200_000
_LISTS = frozenset({"include", "exclude"})


class MatrixError(ValueError):
    """A matrix that cannot be expanded. `where`: the keys and indexes that lead to the fault within the matrix."""

    def __init__(self, message: str, *where: str | int) -> None:
        super().__init__(message)
        self.where = where


@dataclass(slots=True)
class Combination:
    """One leg: `values` is its `matrix` context, `shown` the values its display name lists."""

    values: dict[str, Any]
    shown: list[Any]


@dataclass(slots=True)
class _Include:
    filter: dict[str, Any]
    extra: dict[str, Any]
    matched: bool = field(default=False)


def expand(matrix: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The combinations in GitHub's order; [] for no matrix. Raises MatrixError, also beyond 256 combinations."""
    return [combination.values for combination in combinations(matrix)]


def check(matrix: Mapping[str, Any]) -> None:
    """Raises MatrixError as expand does, without making the legs where counting them is enough."""
    if any(key.casefold() in _LISTS for key in matrix):
        combinations(matrix)
        return
    vectors = _vectors(matrix)
    size = math.prod(len(vector) for vector in vectors.values()) if vectors else 0
    if size > MAX_LEGS:
        raise MatrixError(_too_many(size))


def combinations(matrix: Mapping[str, Any] | None) -> list[Combination]:
    """As expand, with what each display name shows: of a product leg the vectors only, of an appended one all."""
    if not matrix:
        return []
    vectors = _vectors(matrix)
    excludes = _excludes(matrix, vectors)
    includes = _includes(matrix, vectors)
    size = math.prod(len(vector) for vector in vectors.values()) if vectors else 0
    if size * (1 + len(excludes) + len(includes)) > _MAX_COMPARISONS or (size > MAX_LEGS and not excludes):
        raise MatrixError(_too_many(size))
    found: list[Combination] = []
    # Without any vector product() would make one empty combination; there is none.
    for values in product(*vectors.values()) if vectors else ():
        leg = dict(zip(vectors, values, strict=True))
        if excludes and any(_matches(exclude, leg) for exclude in excludes):
            continue
        if len(found) >= MAX_LEGS:
            raise MatrixError(_too_many(size))
        if includes:
            _merge(leg, _extras(includes, leg))
        found.append(Combination(leg, list(values)))
    for include in includes:
        if not include.matched:
            leg = include.filter | include.extra
            found.append(Combination(leg, list(leg.values())))
    if len(found) > MAX_LEGS:
        raise MatrixError(_too_many(len(found)))
    return found


def _too_many(count: int) -> str:
    return f"The matrix makes {count} jobs; at most {MAX_LEGS} are allowed. Use fewer values or exclude some"


def _vectors(matrix: Mapping[str, Any]) -> dict[str, list[Any]]:
    vectors: dict[str, list[Any]] = {}
    for key, value in matrix.items():
        if key.casefold() in _LISTS:
            continue
        if not isinstance(value, list):
            raise MatrixError(f"Matrix vector '{key}' must be a list of values", key)
        if not value:
            raise MatrixError(f"Matrix vector '{key}' does not contain any values", key)
        vectors[key] = value
    return vectors


def _items(matrix: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    key = next((key for key in matrix if key.casefold() == name), name)
    items = matrix.get(key)
    if items is None or items == "":
        return []
    if not isinstance(items, list):
        raise MatrixError(f"Matrix {name} must be a list of mappings", key)
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise MatrixError(f"Matrix {name} must be a list of mappings", key, index)
    if len(items) > MAX_LEGS * 16:
        raise MatrixError(f"Matrix {name} has {len(items)} items; at most {MAX_LEGS * 16} are allowed", key)
    return items


def _excludes(matrix: Mapping[str, Any], vectors: Mapping[str, list[Any]]) -> list[Mapping[str, Any]]:
    known = {key.casefold() for key in vectors}
    filters = []
    for index, item in enumerate(_items(matrix, "exclude")):
        if not item:
            raise MatrixError("Matrix exclude filter must not be empty", "exclude", index)
        for key in item:
            if key.casefold() not in known:
                message = f"Matrix exclude key '{key}' does not match any key within the matrix"
                raise MatrixError(message, "exclude", index, key)
        filters.append(item)
    return filters


def _includes(matrix: Mapping[str, Any], vectors: Mapping[str, list[Any]]) -> list[_Include]:
    known = {key.casefold() for key in vectors}
    includes = []
    for index, item in enumerate(_items(matrix, "include")):
        if not item:
            raise MatrixError("Matrix include mapping does not contain any values", "include", index)
        wanted = {key: value for key, value in item.items() if key.casefold() in known}
        includes.append(_Include(wanted, {key: value for key, value in item.items() if key not in wanted}))
    return includes


def _extras(includes: list[_Include], leg: Mapping[str, Any]) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    for include in includes:
        if _matches(include.filter, leg):
            include.matched = True
            _merge(extras, include.extra)
    return extras


def _merge(target: dict[str, Any], extra: Mapping[str, Any]) -> None:
    """Set keys that count as the same whatever their case; the first spelling stays."""
    spelled = {key.casefold(): key for key in target}
    for key, value in extra.items():
        target[spelled.setdefault(key.casefold(), key)] = value


def _matches(wanted: object, value: object) -> bool:
    """Whether everything the filter names equals its counterpart; what a filter does not name does not matter, and
    what a combination does not have counts as null (`matrix.a.b == literal` in GitHub's builder)."""
    if isinstance(wanted, Mapping):
        return all(_matches(item, _member(value, key)) for key, item in wanted.items())
    if isinstance(wanted, list):
        items = value if isinstance(value, list) else []
        return all(_matches(item, items[i] if i < len(items) else None) for i, item in enumerate(wanted))
    return equal(value, wanted)


def _member(value: object, key: str) -> object:
    if not isinstance(value, Mapping):
        return None
    if key in value:
        return value[key]
    folded = key.casefold()
    return next((item for name, item in value.items() if name.casefold() == folded), None)

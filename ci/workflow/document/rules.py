"""Which shapes can a value of a workflow file have, in the words the schema table is written in?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Place:
    """What an expression may name here: contexts, and functions beyond the built-ins as name -> (fewest, most)."""

    contexts: frozenset[str]
    functions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    condition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string; other scalars are turned into GitHub's text of them. `values`: the only texts allowed."""

    place: Place | None = None
    filled: bool = False
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number. `least`: the smallest that makes sense; GitHub's parser lets smaller ones pass."""

    place: Place | None = None
    least: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """A key without a value."""

    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anything:
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class List:
    item: Rule
    place: Place | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Key:
    """One known key. `honoured` False: GitHub knows it, this server cannot do it and says so. `own`: whether what is
    wrong below is refused by this server only (GitHub's parser leaves events to its server); None as above the key."""

    rule: Rule
    required: bool = False
    honoured: bool = True
    own: bool | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping of known keys; with `loose` of any other keys too, their values by that rule."""

    keys: Mapping[str, Key] = field(default_factory=dict)
    loose: Rule | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, kw_only=True)
    _folded: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_folded", {name.casefold(): name for name in self.keys})

    def find(self, text: str) -> str | None:
        """The known key that `text` names, whatever its case."""
        return text if text in self.keys else self._folded.get(text.casefold())


@dataclass(frozen=True, slots=True)
class Either:
    """One of several shapes; of several tables the one whose keys are used."""

    rules: tuple[Rule, ...]
    place: Place | None = field(default=None, kw_only=True)


Rule: TypeAlias = Text | Flag | Number | Nothing | Anything | List | Table | Either


def keys(required: Mapping[str, Rule] | None = None, /, **optional: Rule) -> dict[str, Key]:
    """Known keys by name; an underscore in an argument's name stands for a dash."""
    found = {name: Key(rule, required=True) for name, rule in (required or {}).items()}
    found.update({name.strip("_").replace("_", "-"): Key(rule) for name, rule in optional.items()})
    return found


def unhonoured(**optional: Rule) -> dict[str, Key]:
    """Keys that GitHub knows and this server refuses by name."""
    return {name.replace("_", "-"): Key(rule, honoured=False) for name, rule in optional.items()}

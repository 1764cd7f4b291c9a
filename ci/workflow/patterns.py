"""Does a name match a filter pattern? (GitHub docs, "Filter pattern cheat sheet")

`*` any characters but `/`, `**` any characters, `?` the character before it or nothing, `+` one or more of the
character before it, `[ab0-9]` one of these, `\\` takes the next character as it is, a `!` in front negates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

MAX_PATTERN = 4096


@dataclass(slots=True)
class _Machine:
    """A chain of states, held as the bits of integers: matching costs the length of the name, whatever the pattern.
    (A regular expression could be made to backtrack for hours by a hostile pattern.)"""

    tests: list[Callable[[str], bool]] = field(default_factory=list)
    loops: int = 0
    skips: int = 0
    far_skips: int = 0
    masks: dict[str, int] = field(default_factory=dict)

    def add(self, test: Callable[[str], bool], *, loop: bool = False, skip: bool = False) -> None:
        bit = 1 << len(self.tests)
        self.tests.append(test)
        self.loops |= bit if loop else 0
        self.skips |= bit if skip else 0

    def matches(self, name: str) -> bool:
        active = self._closed(1)
        for character in name:
            hit = active & self._mask(character)
            if not hit:
                return False
            active = self._closed((hit << 1) | (hit & self.loops))
        return bool(active >> len(self.tests) & 1)

    def _mask(self, character: str) -> int:
        mask = self.masks.get(character)
        if mask is None:
            mask = sum(1 << index for index, test in enumerate(self.tests) if test(character))
            self.masks[character] = mask
        return mask

    def _closed(self, states: int) -> int:
        while True:
            more = states | ((states & self.skips) << 1) | ((states & self.far_skips) << 3)
            if more == states:
                return states
            states = more


def _any(character: str) -> bool:
    return True


def _none(character: str) -> bool:
    return False


def _no_slash(character: str) -> bool:
    return character != "/"


def _one_of(characters: frozenset[str]) -> Callable[[str], bool]:
    return characters.__contains__


@lru_cache(maxsize=2048)
def _machine(pattern: str) -> _Machine:
    machine = _Machine()
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if pattern.startswith("**/", at):
            # Any number of directories, none at all included. The first state is only left: to enter the directories,
            # or to pass them by, which must not happen any more inside of them.
            machine.far_skips |= 1 << len(machine.tests)
            machine.add(_none, skip=True)
            machine.add(_any, loop=True)
            machine.add(_one_of(frozenset("/")))
            at += 3
        elif pattern.startswith("**", at):
            machine.add(_any, loop=True, skip=True)
            at += 2
        elif character == "*":
            machine.add(_no_slash, loop=True, skip=True)
            at += 1
        elif character in "?+" and machine.tests:
            bit = 1 << (len(machine.tests) - 1)
            machine.skips |= bit if character == "?" else 0
            machine.loops |= bit if character == "+" else 0
            at += 1
        else:
            members, at = _literal(pattern, at)
            machine.add(_one_of(members))
    return machine


def _literal(pattern: str, at: int) -> tuple[frozenset[str], int]:
    """The characters that one plain, escaped or bracketed element takes, and where the next element begins."""
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return frozenset(pattern[at + 1]), at + 2
    if pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
        return _bracket(pattern[at + 1 : end]), end + 1
    return frozenset(pattern[at]), at + 1


def _bracket(inside: str) -> frozenset[str]:
    members: set[str] = set()
    at = 0
    while at < len(inside):
        first, last = inside[at], inside[at + 2] if at + 2 < len(inside) else ""
        if inside[at + 1 : at + 2] == "-" and last and first <= last and (first + last).isascii():
            members.update(chr(code) for code in range(ord(first), ord(last) + 1))
            at += 3
        else:
            members.add(first)
            at += 1
    return frozenset(members)


def matches(pattern: str, name: str) -> bool:
    """Whether one pattern without its leading `!` matches the whole name. Case counts."""
    return len(pattern) <= MAX_PATTERN and _machine(pattern).matches(name)


def included(patterns: Sequence[str], name: str) -> bool:
    """Whether a list of patterns takes the name: the last pattern that matches decides, one with `!` against it."""
    taken = False
    for pattern in patterns:
        negative = pattern.startswith("!")
        if taken == negative and matches(pattern[negative:], name):
            taken = not negative
    return taken


def skips(patterns: Sequence[str], names: Iterable[str]) -> bool:
    """Whether `branches`, `tags` or `paths` with these patterns skip the workflow: no name is included.
    An empty list never skips."""
    return bool(patterns) and not any(included(patterns, name) for name in names)


def ignores(patterns: Sequence[str], names: Iterable[str]) -> bool:
    """Whether `branches-ignore`, `tags-ignore` or `paths-ignore` skip the workflow: every name is ignored.
    Here a pattern with `!` ignores what it does not match, and takes nothing back (as nektos/act reads it)."""
    return bool(patterns) and all(any(_ignored(pattern, name) for pattern in patterns) for name in names)


def _ignored(pattern: str, name: str) -> bool:
    negative = pattern.startswith("!")
    return matches(pattern[negative:], name) != negative

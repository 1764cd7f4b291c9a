"""Which files do the lines of a `path` input mean?

Source of the rules: @actions/glob (its README and what it does): later lines win, `!` excludes, `*`, `?`, `[set]`
within a name and `**` across names; `.` and `..` are refused but for a leading `.`."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

from ci.runner.builtin.step import Failure


class Kind(IntFlag):
    """What a pattern matches at a path."""

    NOTHING = 0
    DIRECTORY = 1
    FILE = 2
    ALL = DIRECTORY | FILE


@dataclass(frozen=True)
class Pattern:
    """One line. `tests`: one a name of the path, None for `**`."""

    negate: bool
    tests: tuple[re.Pattern[str] | None, ...]
    search_path: str
    folders_only: bool
    implicit: bool = False

    @classmethod
    def read(cls, line: str, *, cwd: str, home: str) -> Pattern:
        """Raises Failure."""
        glob, negate = line.strip(), False
        while glob.startswith("!"):
            glob, negate = glob[1:].strip(), not negate
        names = _names(_rooted(glob, cwd=cwd, home=home))
        known: list[str] = []
        for name in names:
            if (literal := _literal(name)) is None:
                break
            known.append(literal)
        tests = tuple(None if name == "**" else _test(name) for name in names)
        return cls(negate, tests, "/" + "/".join(known), glob.endswith("/"))

    def with_descendants(self) -> Iterator[Pattern]:
        """Itself, and everything below what it means."""
        yield self
        if self.folders_only or not self.tests or self.tests[-1] is not None:
            yield Pattern(self.negate, (*self.tests, None), self.search_path, False, implicit=True)

    def match(self, names: Sequence[str]) -> Kind:
        """A `**` that the user wrote at the end means the folder before it too."""
        own = self.tests and self.tests[-1] is None and not self.implicit
        if len(self.tests) not in self._states([*names, ""] if own else names):
            return Kind.NOTHING
        return Kind.DIRECTORY if self.folders_only else Kind.ALL

    def may_match_below(self, names: Sequence[str]) -> bool:
        return bool(self._states(names))

    def _states(self, names: Sequence[str]) -> set[int]:
        """How many tests may have been used up when all names are."""
        end = len(self.tests)
        states = self._without_empty({0})
        for name in names:
            following: set[int] = set()
            for at in states - {end}:
                test = self.tests[at]
                if test is None:
                    following |= {at, end} if at == end - 1 else {at}
                elif test.fullmatch(name):
                    following.add(at + 1)
            states = self._without_empty(following)
        return states

    def _without_empty(self, states: set[int]) -> set[int]:
        """`**` in the middle may stand for nothing at all."""
        for at in range(len(self.tests) - 1):
            if at in states and self.tests[at] is None:
                states.add(at + 1)
        return states


def _rooted(glob: str, *, cwd: str, home: str) -> str:
    """The pattern from the root on. Raises Failure."""
    if not glob:
        raise Failure("Invalid pattern: it is empty. Give a path.")
    for index, name in enumerate(re.sub("//+", "/", glob).rstrip("/").split("/")):
        if _literal(name) == ".." or (name == "." and index > 0):
            raise Failure(f"Invalid pattern '{glob}'. Relative pathing '.' and '..' is not allowed.")
    if glob.startswith("/"):
        return glob
    if glob == "~" or glob.startswith("~/"):
        return escape(home) + glob[1:]
    return f"{escape(cwd)}/{glob[1:] if glob == '.' or glob.startswith('./') else glob}"


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def escape(path: str) -> str:
    """The pattern that means just this path."""
    return re.sub(r"([\\?*]|\[(?=[^/]+\]))", lambda found: "\\" + found[0], path)


def _pieces(name: str) -> Iterator[tuple[str, str]]:
    """The pattern of one name taken apart: ("text", c), ("set", inside) or ("*" or "?", "")."""
    index = 0
    while index < len(name):
        char = name[index]
        if char == "\\" and index + 1 < len(name):
            yield "text", name[index + 1]
            index += 2
        elif char == "[" and (end := name.find("]", index + 2)) > 0:
            yield "set", name[index + 1 : end]
            index = end + 1
        else:
            yield (char, "") if char in "*?" else ("text", char)
            index += 1


def _literal(name: str) -> str | None:
    """The name that the pattern can only mean; None where it is more than one."""
    found = ""
    for kind, value in _pieces(name):
        if kind in "*?" or len(value) != 1:
            return None
        found += value
    return found


def _test(name: str) -> re.Pattern[str]:
    """Raises Failure."""
    out = ["(?=.)"]
    for kind, value in _pieces(name):
        if kind == "text":
            out.append(re.escape(value))
        elif kind == "set":
            negated = value[0] in "!^" and len(value) > 1
            inside = re.sub(r"([\[\]^&~|])", r"\\\1", value[1:] if negated else value)
            out.append(f"[{'^' if negated else ''}{inside}]")
        else:
            out.append("[^/]*" if kind == "*" else "[^/]")
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error as problem:
        raise Failure(f"Invalid pattern '{name}': {problem}") from problem


class Globber:
    """The lines of one input. Empty lines and those with a # at their beginning are left out."""

    def __init__(self, lines: Sequence[str], *, cwd: Path, home: Path) -> None:
        """Raises Failure."""
        wanted = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
        self._patterns = [Pattern.read(line, cwd=str(cwd), home=str(home)) for line in wanted]

    def search_paths(self) -> list[str]:
        """Where to look: the part of each line before its first wildcard, without those below another."""
        candidates = [pattern.search_path for pattern in self._patterns if not pattern.negate]
        return [
            path
            for path in dict.fromkeys(candidates)
            if not any(path != other and path.startswith(f"{other.rstrip('/')}/") for other in candidates)
        ]

    def find(self, *, descendants: bool, hidden: bool = True) -> Iterator[tuple[str, os.stat_result]]:
        """Files and folders, in the order of their names, links followed. `descendants`: a line that names a folder
        means all below it. `hidden`: also what begins with a dot, and what is below it."""
        patterns = [
            each for pattern in self._patterns for each in (pattern.with_descendants() if descendants else [pattern])
        ]
        pending: list[tuple[str, tuple[str, ...]]] = [(path, ()) for path in reversed(self.search_paths())]
        while pending:
            path, above = pending.pop()
            names = _names(path)
            kind = Kind.NOTHING
            for pattern in patterns:
                kind = kind & ~pattern.match(names) if pattern.negate else kind | pattern.match(names)
            further = any(not pattern.negate and pattern.may_match_below(names) for pattern in patterns)
            if not kind and not further:
                continue
            found = _stat(path)
            if found is None or (not hidden and os.path.basename(path).startswith(".")):
                continue
            if not stat.S_ISDIR(found.st_mode):
                if kind & Kind.FILE:
                    yield path, found
                continue
            if (real := os.path.realpath(path)) in above:
                continue  # a link to a folder around it
            if kind & Kind.DIRECTORY:
                yield path, found
            if further:
                pending += [(os.path.join(path, name), (*above, real)) for name in _listed(path)]


def _stat(path: str) -> os.stat_result | None:
    """None for nothing there, and for a broken link. Raises Failure."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as problem:
        if os.path.islink(path):
            return None
        raise Failure(f"'{path}' cannot be looked at: {problem.strerror}") from problem


def _listed(path: str) -> list[str]:
    """Raises Failure."""
    try:
        return sorted(os.listdir(path), reverse=True)
    except OSError as problem:
        raise Failure(f"The folder '{path}' cannot be read: {problem.strerror}") from problem

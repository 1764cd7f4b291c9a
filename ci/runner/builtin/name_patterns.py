"""Which names does a pattern match?

Source of the rules: minimatch as actions/download-artifact calls it for `pattern`: `*`, `?`, `[set]`, `{a,b}`,
`{1..3}`, `@(a|b)` and its kin, a leading `!` for the opposite, a leading `#` for a comment that matches nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ci.runner.builtin.step import Failure

MOST_ALTERNATIVES = 1000
LONGEST = 500
_CLOSES = {"?": ")?", "*": ")*", "+": ")+", "@": ")"}


def matches(name: str, pattern: str) -> bool:
    """Raises Failure for a pattern that is too long."""
    if len(pattern) > LONGEST:
        raise Failure(f"A pattern has at most {LONGEST} characters; this one has {len(pattern)}.")
    if pattern.startswith("#"):
        return False
    plain = pattern.lstrip("!")
    opposite = (len(pattern) - len(plain)) % 2 == 1
    alternatives = list(islice(_alternatives(plain), MOST_ALTERNATIVES + 1))
    if len(alternatives) > MOST_ALTERNATIVES:
        raise Failure(f"The pattern '{pattern[:100]}' stands for more than {MOST_ALTERNATIVES} others.")
    return any(_matches(name, each) for each in alternatives) is not opposite


def _alternatives(pattern: str) -> Iterator[str]:
    """The patterns that braces stand for."""
    start = pattern.find("{")
    while start >= 0:
        if (end := _closing(pattern, start)) and (parts := _parts(pattern[start + 1 : end])):
            for part in parts:
                yield from _alternatives(pattern[:start] + part + pattern[end + 1 :])
            return
        start = pattern.find("{", start + 1)
    yield pattern


def _closing(pattern: str, start: int) -> int:
    depth = 0
    for index in range(start, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[index], 0)
        if depth == 0:
            return index
    return 0


def _parts(inside: str) -> list[str]:
    """What one pair of braces chooses from; nothing where the braces mean themselves."""
    if numbers := re.fullmatch(r"(-?\d{1,6})\.\.(-?\d{1,6})", inside):
        first, last = int(numbers[1]), int(numbers[2])
        way = 1 if first <= last else -1
        return [str(number) for number in range(first, last + way, way)][: MOST_ALTERNATIVES + 1]
    parts, depth = [""], 0
    for char in inside:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts if len(parts) > 1 else []


def _matches(name: str, pattern: str) -> bool:
    if not pattern or not name:
        return pattern == name
    hidden = "" if pattern.startswith((".", "\\.")) else r"(?!\.)"
    try:
        return re.fullmatch(hidden + _expression(pattern), name, re.DOTALL) is not None
    except re.error:
        return name == pattern


def _expression(pattern: str) -> str:
    if not pattern:
        return ""
    char, rest = pattern[0], pattern[1:]
    if char in "?*+@!" and rest.startswith("(") and (end := _end_of_group(rest)):
        inner = "|".join(_expression(choice) for choice in _choices(rest[1:end]))
        after = _expression(rest[end + 1 :])
        if char == "!":
            return f"(?!(?:{inner}){after}\\Z)[^/]*?{after}"
        return f"(?:{inner}{_CLOSES[char]}{after}"
    if char == "\\" and rest:
        return re.escape(rest[0]) + _expression(rest[1:])
    if char == "[" and (end := rest.find("]", 1)) > 0:
        inside = rest[:end]
        negated = inside[0] in "!^" and len(inside) > 1
        inside = re.sub(r"([\[\]^&~|\\])", r"\\\1", inside[1:] if negated else inside)
        return f"[{'^' if negated else ''}{inside}]" + _expression(rest[end + 1 :])
    return ({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char)) + _expression(rest)


def _end_of_group(rest: str) -> int:
    depth = 0
    for index, char in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0:
            return index
    return 0


def _choices(inside: str) -> list[str]:
    choices, depth = [""], 0
    for char in inside:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "|" and depth == 0:
            choices.append("")
        else:
            choices[-1] += char
    return choices

"""What is a guard, to the script that takes it away?"""

from __future__ import annotations

from dataclasses import dataclass

T = "ci/lifecycle/transitions/"
RACES = "tests/races/"
LIFE = "tests/lifecycle/"


@dataclass(frozen=True)
class Guard:
    """`old` in `path` becomes `new`; `tests` are the ones that should see it."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]

"""How much of the machine does its kernel let these processes have? What containers and service managers set.

Linux docs, "Control Group v2" (cpu.max, memory.max) and, of version 1, "CPU bandwidth control" (cpu.cfs_quota_us) and
"Memory Resource Controller" (memory.limit_in_bytes).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")


def processor_limit(root: Path = _ROOT) -> int | None:
    """Cores, a part of one counted as one; None where nothing limits them."""
    found = []
    for folder in _folders(root, "cpu"):
        quota, period = _words(folder / "cpu.max") or (
            [*_words(folder / "cpu.cfs_quota_us"), *_words(folder / "cpu.cfs_period_us")] or ["max", "0"]
        )
        if quota.isdecimal() and period.isdecimal() and int(period):
            found.append(max(1, math.ceil(int(quota) / int(period))))
    return min(found, default=None)


def memory_limit(root: Path = _ROOT) -> int | None:
    """Bytes; None where nothing limits them. Version 1 says a number beyond every memory then."""
    found: list[int] = []
    for folder in _folders(root, "memory"):
        words = (*_words(folder / "memory.max"), *_words(folder / "memory.limit_in_bytes"))
        found += [int(word) for word in words if word.isdecimal()]
    return min(found, default=None)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Of this process's group and of those around it, for each limits those within. In a container the mount begins
    at its own group, whatever the path says: so the top of the mount is always among them."""
    mount = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = mount / controller if controllers else mount
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for length in range(len(parts) + 1):
            yield top.joinpath(*parts[:length])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _words(file: Path) -> list[str]:
    return " ".join(_lines(file)).split()

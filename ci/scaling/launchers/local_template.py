"""What may the template of a set say about its local processes?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

MOST_VARIABLES = 100
MOST_VALUE = 10_000
MOST_NICE = 19
LEAST_MEMORY_MIB = 64
MOST_MEMORY_MIB = 16 * 1024 * 1024
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
# Ours: the runner's own settings, and what only the server's processes may know.
OF_SERVERS = ("FORGE_", "DJANGO_", "DATABASE_URL", "AWS_")


def check_template(template: Mapping[str, Any]) -> list[str]:
    """What is wrong, a sentence each. The keys: `environment` (names and texts; jobs see them too), `work` (the folder
    below which each runner has one of its own), `nice` (0 to 19), `memory_mib` (a runner that uses more is ended)."""
    if not isinstance(template, Mapping):
        return ['The template must be a mapping, for example {"nice": 10}.']
    unknown = sorted(str(key)[:50] for key in template if key not in _CHECKS)
    problems = [f"'{key}' is no key for local processes; there are {', '.join(_CHECKS)}." for key in unknown[:10]]
    for key, check in _CHECKS.items():
        if key in template:
            problems += check(template[key])
    return problems


def _environment(value: Any) -> list[str]:
    if not isinstance(value, Mapping) or len(value) > MOST_VARIABLES:
        return [f"environment must be a mapping of at most {MOST_VARIABLES} names to texts."]
    problems = []
    for name, text in value.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            problems.append(f"environment: '{str(name)[:50]}' is no name of a variable.")
        elif name.startswith(OF_SERVERS):
            problems.append(f"environment: {name} belongs to the forge, and cannot be set for its runners.")
        elif not isinstance(text, str) or len(text) > MOST_VALUE or "\0" in text:
            problems.append(f"environment: {name} must be a text of at most {MOST_VALUE} characters; quote numbers.")
    return problems


def _work(value: Any) -> list[str]:
    path = PurePosixPath(value) if isinstance(value, str) and len(value) <= 1000 and "\0" not in value else None
    if path is None or not path.is_absolute() or ".." in path.parts:
        return ["work must be the full path of a folder, for example /var/lib/forge-work."]
    return []


def _number(name: str, least: int, most: int) -> Callable[[Any], list[str]]:
    def check(value: Any) -> list[str]:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return [] if fits else [f"{name} must be a whole number from {least} to {most}."]

    return check


_CHECKS: dict[str, Callable[[Any], list[str]]] = {
    "environment": _environment,
    "memory_mib": _number("memory_mib", LEAST_MEMORY_MIB, MOST_MEMORY_MIB),
    "nice": _number("nice", 0, MOST_NICE),
    "work": _work,
}

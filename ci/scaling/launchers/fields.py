"""Are the plain fields of a template what they must be? Each check answers sentences, none where all is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

MAX_ITEMS = 200
MAX_TEXT = 32_000
RESERVED = "FORGE_"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}")

Check = Callable[[Any], list[str]]


def problems(template: Mapping[str, Any], *, checks: Mapping[str, Check], required: tuple[str, ...] = ()) -> list[str]:
    """Unknown, missing and wrong fields of a template."""
    if not isinstance(template, Mapping):
        return ['A template is a JSON object, such as {"image": "registry.example.org/runner:1"}.']
    found = [
        f"'{name[:50]}' is no field of this template; there are {', '.join(checks)}."
        for name in sorted(map(str, template.keys() - checks.keys()))[:10]
    ]
    found += [f"'{name}' is missing." for name in required if name not in template]
    for name, check in checks.items():
        if name in template:
            found += [f"{name}: {problem}" for problem in check(template[name])]
    return found


def image(value: Any) -> list[str]:
    if isinstance(value, str) and _IMAGE.fullmatch(value):
        return []
    return ["an image's name is wanted, such as registry.example.org/runner:1."]


def url(value: Any) -> list[str]:
    """The forge's address as the runner sees it, where that is another one than people use."""
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts and parts.scheme in ("http", "https") and parts.hostname and not (parts.username or parts.query):
        return []
    return ["the forge's address is wanted, such as http://forge.internal:8000."]


def words(value: Any) -> list[str]:
    """A command line as a list; what holds spaces is one word."""
    if (
        isinstance(value, list)
        and 0 < len(value) <= MAX_ITEMS
        and all(isinstance(word, str) and len(word) <= MAX_TEXT and "\0" not in word for word in value)
        and value[0] != ""
    ):
        return []
    return [f'a list of up to {MAX_ITEMS} texts is wanted, such as ["python", "-m", "ci.runner", "once"].']


def environment(value: Any) -> list[str]:
    if not isinstance(value, Mapping) or len(value) > MAX_ITEMS:
        return [f'an object of up to {MAX_ITEMS} names and texts is wanted, such as {{"TZ": "UTC"}}.']
    found = []
    for name, text in value.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            found.append(f"'{name}' is no name of a variable.")
        elif name.upper().startswith(RESERVED):
            found.append(f"{name}: variables that begin with {RESERVED} are set by the forge.")
        elif not isinstance(text, str) or len(text) > MAX_TEXT or "\0" in text:
            found.append(f"{name}: a text of at most {MAX_TEXT} characters is wanted.")
    return found


def one_of(*choices: str) -> Check:
    return lambda value: [] if value in choices else [f"one of {', '.join(choices)} is wanted."]


def text(value: Any) -> list[str]:
    return [] if isinstance(value, str) and 0 < len(value) <= 500 and value.isprintable() else ["a text is wanted."]


def path(value: Any) -> list[str]:
    if not text(value) and value.startswith("/") and ".." not in value.split("/"):
        return []
    return ["an absolute path is wanted."]


def flag(value: Any) -> list[str]:
    return [] if isinstance(value, bool) else ["true or false is wanted."]

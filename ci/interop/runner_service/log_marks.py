"""How does our log page know a group, an error, a warning in a foreign runner's log? By GitHub's marks, `##[error]…`.

The runners leave it to the page of their own forge to understand workflow commands: Gitea's sends all of them as they
were printed, Forgejo's writes marks for groups and leaves the rest.
"""

from __future__ import annotations

import re

_COMMAND = re.compile(r"::(group|endgroup|error|warning|notice|debug)(?: ([^:]*(?::(?!:)[^:]*)*))?::(.*)", re.DOTALL)
_CODES = (("%0D", ""), ("%0A", " "), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
_PLACE = ("file", "line", "col")


def marked(text: str) -> str:
    """The line as our page understands it: still one line."""
    command = _COMMAND.match(text) if text.startswith("::") else None
    if command is None:
        return text
    name, given, data = command[1], command[2] or "", _plain(command[3])
    if name == "endgroup":
        return "##[endgroup]"
    properties = dict(part.partition("=")[::2] for part in given.split(",") if "=" in part)
    properties = {key.strip(): _plain(value) for key, value in properties.items()}
    place = ":".join(properties[key] for key in _PLACE if properties.get(key)) if properties.get("file") else ""
    return f"##[{name}]" + ": ".join(part for part in (place, properties.get("title"), data) if part)


def _plain(text: str) -> str:
    for code, character in _CODES:
        text = text.replace(code, character)
    return text

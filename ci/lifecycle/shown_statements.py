"""How is a statement shown to an operator, without the values in it, which may be secrets?

PostgreSQL docs, "Lexical Structure". What pg_stat_activity holds may end anywhere: a literal that has no end is one.
"""

from __future__ import annotations

import re

MOST_CHARACTERS = 120
_HIDDEN = "?"
_TOKEN = re.compile(
    r"""
    (?P<name>"(?:[^"]|"")*(?:"|\Z))                # a name in quotes is no value, whatever is in it
    # Of one with another within it nobody knows the end: nothing is shown from there on.
    | (?P<comment>--[^\r\n]*|/\*(?:(?!/\*|\*/).)*\*/|/\*.*\Z)
    | (?P<value>
        \b[eE]'(?:[^'\\]|\\.|'')*\\?(?:'|\Z)
        | '(?:[^']|'')*(?:'|\Z)
        | (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)
        | (?<![\w$."])\.?\d[\w.]*(?:(?<=[eE])[+-]\d+)?
      )
    """,
    re.VERBOSE | re.DOTALL,
)


def shown(statement: str, *, most: int = MOST_CHARACTERS) -> str:
    """The beginning of the statement in one line, each literal as `?`, comments left out. Parameters ($1) stay."""
    words = " ".join(_TOKEN.sub(_replacement, statement).split())
    return words if len(words) <= most else words[: most - 1] + "…"


def _replacement(found: re.Match[str]) -> str:
    if found["name"] is not None:
        return found["name"]
    return " " if found["comment"] is not None else _HIDDEN

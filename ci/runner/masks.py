"""Which parts of a text are secret, and how are they hidden?"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterable, Iterator
from html import escape
from urllib.parse import quote, quote_plus

REPLACEMENT = "***"

# Lines of a multi-line secret such as "{" or "}" would turn every log into stars and reveal nothing.
SHORTEST_PART = 3
# Below this length a base64 form is too short to be told from ordinary text.
SHORTEST_BASE64 = 6

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """Replace what no database or UTF-8 stream takes (NUL, lone surrogates) by U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def _base64_forms(value: str) -> Iterator[str]:
    """The base64 texts in which the value shows, whatever stands before it (three alignments)."""
    raw = value.encode("utf-8", "replace")
    if len(raw) < SHORTEST_BASE64:
        return
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        # The first characters mix in what stands before, the last ones what follows: neither is certain.
        start = (0, 2, 3)[shift]
        certain = (shift + len(raw)) * 8 // 6
        form = encoded[start:certain]
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _forms(value: str) -> Iterator[str]:
    """Every text that gives the value away: itself, its lines, its usual encodings."""
    yield value
    lines = [line.strip() for line in re.split(r"[\r\n]+", value)]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= SHORTEST_PART)
    elif lines[0] != value and len(lines[0]) >= SHORTEST_PART:
        yield lines[0]
    yield from _base64_forms(value)
    if len(value) >= SHORTEST_PART:
        yield json.dumps(value)[1:-1]
        yield json.dumps(value, ensure_ascii=False)[1:-1]
        yield quote(value, safe="")
        yield quote_plus(value)
        yield escape(value)
        # As bash prints an argument with set -x, and as an expression quotes a text.
        yield value.replace("'", "'\\''")
        yield value.replace("'", "''")


class Masks:
    """The secrets of one job. Safe to use from several threads."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0
        self._lock = threading.Lock()
        self.add_all(values)

    def add(self, value: str) -> None:
        self.add_all([value])

    def add_all(self, values: Iterable[str]) -> None:
        """Hide these values from now on. Empty and blank values are ignored."""
        with self._lock:
            for value in values:
                if value.strip():
                    self._forms.update(form for form in _forms(value) if form.strip())
            ordered = sorted(self._forms, key=len, reverse=True)
            self._longest = max((len(form.encode("utf-8", "replace")) for form in ordered[:64]), default=0)
            self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    @property
    def longest(self) -> int:
        """Bytes of the longest secret form: how far a secret may reach over a cut."""
        return self._longest

    def found_in(self, text: str) -> bool:
        pattern = self._pattern
        return bool(pattern and pattern.search(text))

    def hide(self, text: str, *, cut: int | None = None) -> str:
        """The text with each secret replaced; with `cut` (characters), no more than that much of the original.

        A secret that straddles the cut is hidden whole, so that a cut never shows its beginning.
        """
        kept = text if cut is None else text[:cut]
        if not self.found_in(text):
            return kept
        parts: list[str] = []
        position = 0
        for start, end in self._spans(text):
            if start >= len(kept):
                break
            parts += [text[position:start], REPLACEMENT]
            position = end
        parts.append(kept[position:])
        return "".join(parts)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where secrets are, overlapping and touching ones joined."""
        with self._lock:
            forms = list(self._forms)
        found: list[tuple[int, int]] = []
        for form in forms:
            start = text.find(form)
            while start >= 0:
                found.append((start, start + len(form)))
                start = text.find(form, start + 1)
        joined: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return joined

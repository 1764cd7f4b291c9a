"""How do lines of a log become list items? Escaped, coloured, and folded in groups that later batches go on with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from django.utils.safestring import SafeString, mark_safe

from ci.models import Step, StepState
from ci.storage.logs import LogLine
from ci.web import ansi
from ci.web.ansi import PLAIN, Style

# Of a longer line the page shows the beginning; the raw log has it whole.
MOST_CHARACTERS = 4000
_MARKER = re.compile(r"##\[(group|endgroup|error|warning|notice|debug|command|section)\](.*)", re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)(\.\d{1,3})?")
_LEVELS = {"error": "Error: ", "warning": "Warning: ", "notice": "Notice: "}


@dataclass
class Rendering:
    """Turns lines into HTML. `style` and `fold` (the number of the line that opened the group) hold after the last one.

    `parts` are pairs of a fold that was open before this rendering began (or None) and the HTML that belongs into it.
    """

    timestamps: bool = False
    style: Style = PLAIN
    fold: int | None = None
    parts: list[tuple[int | None, list[str]]] = field(default_factory=list)
    _nested: bool = False

    def feed(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            marker = _MARKER.match(line.text)
            kind = marker[1] if marker else ""
            if kind == "endgroup":
                self._close()
            elif marker and kind == "group":
                self._close()
                self._open(line, marker[2])
            else:
                self._write(self._item(line, kind, marker[2] if marker else line.text))

    def end(self) -> None:
        """Leave valid HTML, with the group still open for the lines to come."""
        if self._nested:
            self._write("</ol></details></li>")
            self._nested = False

    def html(self) -> SafeString:
        """All of it, where nothing had been open before."""
        return mark_safe("".join(piece for _, pieces in self.parts for piece in pieces))  # noqa: S308 - escaped piecewise

    def _write(self, piece: str) -> None:
        target = None if self._nested else self.fold
        if not self.parts or self.parts[-1][0] != target:
            self.parts.append((target, []))
        self.parts[-1][1].append(piece)

    def _open(self, line: LogLine, title: str) -> None:
        number = line.number + 1
        head, _ = ansi.render(title[:MOST_CHARACTERS])
        self._nested = True
        self.fold = None
        self._write(
            f'<li class="fold"><details><summary id="L{number}">{self._stamp(line)}{_link(number)}{head or "Group"}'
            f'</summary><ol class="lines" id="fold-{number}">'
        )
        self.fold = number

    def _close(self) -> None:
        if self._nested:
            self._write("</ol></details></li>")
        self._nested = False
        self.fold = None

    def _item(self, line: LogLine, kind: str, text: str) -> str:
        number = line.number + 1
        html, self.style = ansi.render(text[:MOST_CHARACTERS], self.style)
        if len(text) > MOST_CHARACTERS:
            html += f' <span class="dim">… {len(text) - MOST_CHARACTERS:,} more characters in the raw log</span>'
        if kind in _LEVELS:
            html = f'<span class="level">{_LEVELS[kind]}</span>{html}'
        looks = f' class="line-{kind}"' if kind else ""
        return f'<li id="L{number}"{looks}>{_link(number)}{self._stamp(line)}{html}</li>'

    def _stamp(self, line: LogLine) -> str:
        if not self.timestamps:
            return ""
        match = _TIME.match(line.time)
        shown = f"{match[1]}{(match[2] or '.000').ljust(4, '0')}" if match else line.time
        return f'<time title="{escape(line.time)}">{escape(shown)}</time>'


@dataclass(frozen=True)
class Stretch:
    """The lines first … end - 1 of a log, and the step that wrote them (None before any step began)."""

    step: Step | None
    first: int
    end: int


def stretches(steps: Sequence[Step], total: int) -> list[Stretch]:
    """Which step wrote which of `total` lines. No line is left out: what no step claims goes to the one before it."""
    found: list[Stretch] = []
    for step in steps:
        silent = step.state == StepState.PENDING or (step.state == StepState.ENDED and not step.line_count)
        if silent:
            continue
        first = max(step.first_line, found[-1].first if found else 0) if found else 0
        if found:
            found[-1] = Stretch(found[-1].step, found[-1].first, min(first, total))
        found.append(Stretch(step, min(first, total), total))
    return found or [Stretch(None, 0, total)]


def _link(number: int) -> str:
    # The number is drawn by the stylesheet, so that copying lines does not copy it.
    return f'<a class="ln" href="#L{number}" data-n="{number}" tabindex="-1" aria-label="Line {number}"></a>'

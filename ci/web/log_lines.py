"""How do lines of a log become list items? Escaped, coloured, and folded in groups that later batches go on with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from django.utils.safestring import SafeString, mark_safe

from ci.models import Conclusion, Step, StepState
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
            marker = _MARKER.match(line.text) if line.text.startswith("##[") else None
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
            f'</summary><ol class="log-lines" id="fold-{number}">'
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
    for step, first in _claims(steps, total):
        first = min(max(first, found[-1].first), total) if found else 0
        if found:
            found[-1] = Stretch(found[-1].step, found[-1].first, first)
        found.append(Stretch(step, first, total))
    return found or [Stretch(None, 0, total)]


def _claims(steps: Sequence[Step], total: int) -> list[tuple[Step, int]]:
    """The steps that wrote lines, each with its first one."""
    claims = [(step, step.first_line) for step in steps if step.line_count or step.state == StepState.RUNNING]
    last = claims[-1][0] if claims else None
    if last is not None and last.state == StepState.RUNNING:
        return claims
    # A step that was cut short never came to say how many lines it wrote.
    claimed = last.first_line + last.line_count if last else 0
    silent = [step for step in steps if step.state == StepState.ENDED and step.conclusion != Conclusion.SKIPPED]
    cut_short = next((step for step in silent if last is None or step.number > last.number), None)
    if cut_short is not None and claimed < total:
        claims.append((cut_short, max(cut_short.first_line, claimed)))
    return claims


def _link(number: int) -> str:
    # The number is drawn by the stylesheet, so that copying lines does not copy it.
    return f'<a class="ln" href="#L{number}" data-n="{number}" tabindex="-1" aria-label="Line {number}"></a>'

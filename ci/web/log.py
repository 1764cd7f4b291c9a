"""Which part of a job's log does a page show, and what is new in it since?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from ci.models import Job, Log, Step
from ci.storage import logs
from ci.storage.logs import LogLine, LogLost
from ci.web.ansi import Style
from ci.web.log_lines import Rendering, Stretch, stretches
from ci.web.pages import number

MOST_LINES = 2000
MOST_CHARACTERS = 1024 * 1024
# A page that follows a running log grows; at this many lines it asks its reader to load it anew.
MOST_FOLLOWED = 20_000
MOST_LINE = 2**31 - 1


@dataclass(frozen=True)
class Cursor:
    """Where a page that follows a log stands: in its address, so that any web process can answer."""

    line: int
    version: int = 0  # of the job
    shown: int = 0
    step: int = 0
    fold: int | None = None
    style: str = ""
    states: str = ""
    timestamps: bool = False

    @classmethod
    def read(cls, query: QueryDict) -> Cursor:
        states = query.get("states", "")
        return cls(
            line=number(query.get("after"), most=MOST_LINE) or 0,
            version=number(query.get("version"), most=MOST_LINE) or 0,
            shown=number(query.get("shown"), most=MOST_LINE) or 0,
            step=number(query.get("step"), most=MOST_LINE) or 0,
            fold=number(query.get("fold"), most=MOST_LINE) or None,
            style=Style.load(query.get("style", "")).dump(),
            states=states if set(states) <= set("pre") else "",
            timestamps=query.get("timestamps") == "1",
        )

    def query(self) -> str:
        names = ("version", "shown", "step", "states")
        facts: dict[str, Any] = {"after": self.line, **{name: getattr(self, name) for name in names}}
        if self.fold:
            facts["fold"] = self.fold
        if self.style:
            facts["style"] = self.style
        if self.timestamps:
            facts["timestamps"] = 1
        return urlencode(facts)


@dataclass(frozen=True)
class Shown:
    """One step as a fold-out: its lines on this page, and how many lie before and after it."""

    step: Step | None
    number: int
    html: SafeString
    earlier: int = 0
    earlier_from: int = 0
    later: int = 0
    later_from: int = 0
    is_open: bool = False


@dataclass(frozen=True)
class Window:
    steps: list[Shown]
    first: int
    end: int
    total: int
    cursor: Cursor
    lost: str = ""

    @property
    def is_tail(self) -> bool:
        return self.end >= self.total


@dataclass(frozen=True)
class Addition:
    """What goes into the list with the id `target`."""

    target: str
    html: SafeString


def window(request: HttpRequest, job: Job, steps: list[Step]) -> Window:
    """The last lines of the log, or those from `?first=` on, or those around `?line=`."""
    total, count = _size(job)
    line = number(request.GET.get("line"), most=MOST_LINE)
    first = max(0, line - count // 2) if line else number(request.GET.get("first"), most=MOST_LINE)
    at_end = first is None or first >= max(0, total - count)
    start = max(0, total - count) if at_end else first or 0
    lost = ""
    try:
        lines = _bounded(logs.lines(job.pk, start, count), keep_end=at_end)
    except LogLost as error:
        lines, lost = [], str(error)
    view = _View(lines, start, total, line, request.GET.get("timestamps") == "1", first is not None)
    shown, last = _fold_outs(steps, view)
    cursor = Cursor(
        line=view.end,
        version=job.version,
        shown=len(lines),
        step=_step_at(steps, view.total, view.end - 1),
        fold=last.fold,
        style=last.style.dump(),
        states=state_letters(steps),
        timestamps=view.timestamps,
    )
    return Window(shown, view.first, view.end, view.total, cursor, lost)


def additions(job: Job, steps: list[Step], cursor: Cursor) -> tuple[list[Addition], Cursor, bool]:
    """What was added since the cursor, the cursor after it, and whether more waits already."""
    total, count = _size(job)
    lines = _bounded(logs.lines(job.pk, cursor.line, count // 2), keep_end=False)
    total = max(total, cursor.line + len(lines))
    found: list[Addition] = []
    rendering = Rendering(cursor.timestamps, Style.load(cursor.style), cursor.fold)
    step = cursor.step
    for stretch in stretches(steps, total):
        mine = [line for line in lines if stretch.first <= line.number < stretch.end]
        if not mine:
            continue
        if step != _number(stretch.step):
            rendering = Rendering(cursor.timestamps)
        rendering.feed(mine)
        rendering.end()
        step = _number(stretch.step)
        for fold, pieces in rendering.parts:
            target = f"fold-{fold}" if fold else f"step-{step}-lines"
            found.append(Addition(target, mark_safe("".join(pieces))))  # noqa: S308 - escaped piecewise
    end = lines[-1].number + 1 if lines else cursor.line
    after = Cursor(
        line=end,
        version=job.version,
        shown=cursor.shown + len(lines),
        step=step,
        fold=rendering.fold,
        style=rendering.style.dump(),
        states=state_letters(steps),
        timestamps=cursor.timestamps,
    )
    return found, after, end < total


def is_complete(job: Job) -> bool:
    """Whether no line can come any more. Late ones are accepted until the log is sealed."""
    if job.ended_at is None:
        return False
    return job.ended_at < timezone.now() - timedelta(seconds=settings.LOG_SEAL_SECONDS) or logs.is_sealed(job.pk)


def state_letters(steps: list[Step]) -> str:
    """The steps' states, a letter each (pending, running, ended): what a page shows, in its cursor."""
    return "".join(step.state[0] for step in steps)


class _View:
    """The lines that a page shows, and what it was asked for."""

    def __init__(
        self, lines: list[LogLine], start: int, total: int, line: int | None, timestamps: bool, chosen: bool
    ) -> None:
        self.lines = lines
        self.first = lines[0].number if lines else start
        self.end = lines[-1].number + 1 if lines else start
        self.total = max(total, self.end)
        self.line = line
        self.timestamps = timestamps
        self.chosen = chosen

    def within(self, stretch: Stretch) -> list[LogLine]:
        return [line for line in self.lines if stretch.first <= line.number < stretch.end]

    def opens(self, stretch: Stretch) -> bool:
        """Whether the step is unfolded from the start: failure first, and whatever was asked for."""
        if stretch.step is None or stretch.step.outcome in ("failure", "running"):
            return True
        if self.line is not None:
            return stretch.first < self.line <= stretch.end
        return self.chosen and bool(self.within(stretch))


def _fold_outs(steps: list[Step], view: _View) -> tuple[list[Shown], Rendering]:
    """Every step with its lines, and the rendering that wrote the last line."""
    wrote = {_number(stretch.step): stretch for stretch in stretches(steps, view.total)}
    last = Rendering()
    shown = []
    # Number 0 holds what no step has claimed yet; the stylesheet hides it while it is empty.
    for step in (None, *steps):
        stretch = wrote.get(_number(step), Stretch(step, 0, 0))
        rendering = Rendering(view.timestamps)
        if mine := view.within(stretch):
            rendering.feed(mine)
            rendering.end()
            last = rendering
        shown.append(
            Shown(
                step,
                _number(step),
                rendering.html(),
                earlier=max(0, min(view.first, stretch.end) - stretch.first),
                earlier_from=max(stretch.first, min(view.first, stretch.end) - MOST_LINES),
                later=max(0, stretch.end - max(view.end, stretch.first)),
                later_from=max(view.end, stretch.first),
                is_open=view.opens(stretch),
            )
        )
    return shown, last


def _size(job: Job) -> tuple[int, int]:
    """How many lines the log has, and how many of them to read at once: fewer where they are long."""
    lines, size = Log.objects.filter(pk=job.pk).values_list("lines", "size").first() or (0, 0)
    average = size // lines if lines else 0
    return lines, min(MOST_LINES, max(50, 4 * MOST_CHARACTERS // max(1, average)))


def _bounded(lines: list[LogLine], *, keep_end: bool) -> list[LogLine]:
    """As many of the lines as MOST_CHARACTERS allow, at least one."""
    left = MOST_CHARACTERS
    ordered = lines[::-1] if keep_end else lines
    for count, line in enumerate(ordered):
        left -= len(line.text)
        if left < 0 and count:
            ordered = ordered[:count]
            break
    return ordered[::-1] if keep_end else ordered


def _step_at(steps: list[Step], total: int, line: int) -> int:
    return next((_number(found.step) for found in stretches(steps, total) if found.first <= line < found.end), 0)


def _number(step: Step | None) -> int:
    return step.number if step else 0

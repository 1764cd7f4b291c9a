"""How do a set's demand and capacity look over time? Paths of an SVG, and the same as rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from ci.models import RunnerSet, RunnerSetSample

SPANS = (1, 6, 24)
LEAST = timedelta(minutes=10)
WIDTH, HEIGHT = 720, 160
# More columns than that are finer than a screen shows; of each the highest values count.
COLUMNS = 240
MOST_SAMPLES = 10_000
MOST_ROWS = 100
_FIELDS = ("at", "queued", "busy", "idle", "starting", "desired")


@dataclass(frozen=True)
class Point:
    at: datetime
    queued: int
    busy: int
    idle: int
    starting: int
    desired: int

    @property
    def demand(self) -> int:
        return self.queued + self.busy

    @property
    def runners(self) -> int:
        return self.busy + self.idle + self.starting


def chart(runner_set: RunnerSet, *, hours: int, now: datetime | None = None) -> dict[str, Any]:
    """`layers` from the back to the front, `ticks` of both axes, `summary` in words, `rows` newest first."""
    end = now or timezone.now()
    points = _points(runner_set, end - timedelta(hours=hours), end)
    # The time before the first one would be empty space.
    start = min(points[0].at, end - LEAST) if points else end - timedelta(hours=hours)
    top = max([1, runner_set.maximum, *(max(point.demand, point.runners, point.desired) for point in points)])
    # A queue of thousands would press everything else flat.
    top = min(top, max(4, 3 * max([runner_set.maximum, *(point.runners for point in points)])))
    columns = _columns(points, start, end)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "hours": hours,
        "layers": _layers(columns, top) if points else [],
        "limit": _y(runner_set.maximum, top) if runner_set.maximum <= top else None,
        "y_ticks": [top, top // 2, 0] if top > 1 else [top, 0],
        "x_ticks": [start + (end - start) * part / 4 for part in range(5)],
        "cut": any(point.demand > top for point in points),
        "summary": _summary(points, hours),
        "rows": list(reversed(points))[:MOST_ROWS],
    }


def _points(runner_set: RunnerSet, start: datetime, end: datetime) -> list[Point]:
    """What was kept in that time, after what held when it began."""
    kept = RunnerSetSample.objects.filter(runner_set=runner_set).values_list(*_FIELDS)
    newest = kept.filter(at__gte=start, at__lte=end).order_by("-at", "-pk")[:MOST_SAMPLES]
    found = [Point(*row) for row in newest][::-1]
    before = kept.filter(at__lt=start).order_by("-at", "-pk").first()
    return [*([Point(start, *before[1:])] if before else []), *found]


def _columns(points: Sequence[Point], start: datetime, end: datetime) -> list[tuple[float, Point]]:
    """Points with their x; of those that fall in one column, the highest of each value."""
    columns: dict[int, Point] = {}
    for point in points:
        column = int((point.at - start) / (end - start) * (COLUMNS - 1))
        known = columns.get(column)
        if known is not None:
            highest = (max(getattr(known, name), getattr(point, name)) for name in _FIELDS[1:])
            point = Point(known.at, *highest)
        columns[column] = point
    placed = [(column * WIDTH / (COLUMNS - 1), point) for column, point in sorted(columns.items())]
    # What holds now holds to the right edge: not the highest of its column, but the newest.
    return [*placed, (float(WIDTH), points[-1])] if placed else []


def _layers(columns: Sequence[tuple[float, Point]], top: int) -> list[dict[str, str]]:
    runners = _steps(columns, top, lambda point: point.runners)
    up = _steps(columns, top, lambda point: point.busy + point.idle)
    busy = _steps(columns, top, lambda point: point.busy)
    return [
        {"kind": "starting", "path": _closed(runners, columns), "words": "Runners starting"},
        {"kind": "idle", "path": _closed(up, columns), "words": "Runners idle"},
        {"kind": "busy", "path": _closed(busy, columns), "words": "Runners busy"},
        {"kind": "desired", "path": _steps(columns, top, lambda point: point.desired), "words": "Runners desired"},
        {"kind": "demand", "path": _steps(columns, top, lambda point: point.demand), "words": "Jobs queued or running"},
    ]


def _steps(columns: Sequence[tuple[float, Point]], top: int, value: Callable[[Point], int]) -> str:
    """A value holds until the next one is known: no slope between them."""
    (x, first), *rest = columns
    path = f"M{x:.1f} {_y(value(first), top)}"
    for x, point in rest:
        path += f"H{x:.1f}V{_y(value(point), top)}"
    return path


def _closed(path: str, columns: Sequence[tuple[float, Point]]) -> str:
    return f"{path}V{HEIGHT}H{columns[0][0]:.1f}Z"


def _y(value: int, top: int) -> str:
    return f"{HEIGHT - min(value, top) / top * HEIGHT:.1f}"


def _summary(points: Sequence[Point], hours: int) -> str:
    span = "the last hour" if hours == 1 else f"the last {hours} hours"
    if not points:
        return f"Nothing was recorded in {span}."
    last = points[-1]
    return (
        f"In {span} at most {max(point.demand for point in points)} jobs were queued or running and at most"
        f" {max(point.runners for point in points)} runners were there. Now: {last.queued} queued, {last.busy} busy,"
        f" {last.idle} idle, {last.starting} starting, {last.desired} desired."
    )

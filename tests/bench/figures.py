"""What does a benchmark say? A figure, the limit or peer measured in the same run, their ratio, and the aim."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

HEAD = ("what", "measured", "beside", "ratio", "aim", "met")


@dataclass(frozen=True)
class Figure:
    """A row of the table.

    `measured` and `beside` are numbers with the same `unit`; `ratio` is the first divided by the second, and aims to be
    at most or at least `aim`. Without `beside` (an aim that is absolute) the ratio is that to the aim itself.
    `note`: why an aim was missed, and the next idea; or what else was seen.
    """

    what: str
    measured: float
    unit: str
    aim: float
    beside: float | None = None
    beside_what: str = ""
    better: Literal["less", "more"] = "less"
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.measured / (self.aim if self.beside is None else self.beside)

    @property
    def met(self) -> bool:
        value = self.measured if self.beside is None else self.ratio
        return value <= self.aim if self.better == "less" else value >= self.aim

    def cells(self) -> tuple[str, ...]:
        word = "≤" if self.better == "less" else "≥"
        aim = f"{word} {_short(self.aim)} {self.unit}" if self.beside is None else f"{word} {_short(self.aim)} times"
        beside = "" if self.beside is None else f"{_short(self.beside)} {self.unit}, {self.beside_what}"
        met = "yes" if self.met else "**no**"
        ratio = "" if self.beside is None else _short(self.ratio)
        return (self.what, f"{_short(self.measured)} {self.unit}", beside, ratio, aim, met)


def _short(number: float) -> str:
    """Three digits that count."""
    if number == 0 or abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def table(figures: Iterable[Figure]) -> list[str]:
    """Markdown; the notes follow, numbered as their rows refer to them."""
    rows, notes = [], []
    for figure in figures:
        cells = list(figure.cells())
        if figure.note:
            notes.append(figure.note)
            cells[-1] += f" ({len(notes)})"
        rows.append(f"| {' | '.join(cells)} |")
    numbered = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    head = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    return [*head, *rows, *(["", *numbered] if notes else [])]


def share(values: Sequence[float], part: float) -> float:
    """The value below which this part of them lies: 0.5 the median, 0.99 all but the slowest hundredth."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)

"""Which part of a list from git is shown? Such lists have no cheap total, so pages know only their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

# Skipping costs git as much as listing does.
MAX_PAGE = 10_000


@dataclass(frozen=True)
class Window:
    items: Sequence[Any]
    number: int
    parameter: str
    has_next: bool

    @property
    def has_previous(self) -> bool:
        return self.number > 1

    @property
    def previous_number(self) -> int:
        return self.number - 1

    @property
    def next_number(self) -> int:
        return self.number + 1


def window(
    request: HttpRequest, read: Callable[[int, int], Sequence[Any]], *, size: int, parameter: str = "page"
) -> Window:
    """The page that `request` asks for of what `read(skip, limit)` lists; a bad page number means the first page."""
    asked = request.GET.get(parameter, "")
    number = min(int(asked), MAX_PAGE) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 1
    number = max(number, 1)
    items = read((number - 1) * size, size + 1)
    return Window(items[:size], number, parameter, len(items) > size and number < MAX_PAGE)

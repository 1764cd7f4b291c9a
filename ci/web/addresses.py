"""Where are the many rows of a list? Found once for all of them: each look-up by name would cost as much as its row."""

from __future__ import annotations

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe


class Addresses:
    """The addresses by that name whose last part is a number, all other parts being `arguments`."""

    def __init__(self, name: str, *arguments: object) -> None:
        before, _, after = reverse(name, args=[*arguments, 0]).rpartition("/0")
        self._before, self._after = f"{before}/", after

    def __getitem__(self, number: int) -> SafeString:
        """As HTML has it: such an address is quoted already."""
        return mark_safe(f"{self._before}{int(number)}{self._after}")  # noqa: S308 - made by reverse() from quoted parts

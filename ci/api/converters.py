"""Which numbers in an address can be a row's id?"""

from __future__ import annotations

_LARGEST = 2**63 - 1  # PostgreSQL's bigint


class IdConverter:
    """A positive number that the database can hold; any other is no address at all."""

    regex = "[1-9][0-9]{0,18}"

    def to_python(self, value: str) -> int:
        number = int(value)
        if number > _LARGEST:
            raise ValueError
        return number

    def to_url(self, value: int) -> str:
        return str(value)

"""Which parts of an address can name a row?"""

from __future__ import annotations

from django.urls import register_converter

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


class NameConverter:
    """One segment of text that the database can compare: without NUL."""

    regex = r"[^/\x00]{1,255}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class EnvironmentConverter(NameConverter):
    """The name of an environment, which may hold slashes, as GitHub's may."""

    regex = r"[^\x00]{1,255}"


register_converter(EnvironmentConverter, "environment_name")
register_converter(IdConverter, "row_id")
register_converter(NameConverter, "row_name")

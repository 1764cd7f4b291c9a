"""Two installations on one database and one set of repositories, as on two machines: two of every part of the product.

People push to the first and call the API of the second; runners are on both.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest

from forge.postgres import embedded_database
from tests.e2e.conftest import alice, mallory, new_project
from tests.e2e.people import Person
from tests.e2e.product import Product

__all__ = ["alice", "mallory", "new_project"]

_SETTINGS = {
    "FORGE_ACTIONS_SOURCES": "",
    "FORGE_HEARTBEAT_SECONDS": "30",
    # Nobody finds by chance, a moment later, what he should have been told.
    "FORGE_SWEEP_SECONDS": "3600",
    # Sessions and tasks of the one are taken by the other.
    "FORGE_SECRET_KEY": "the-same-on-both-machines-0123456789abcdefghijklmnopqrstuvwxyz",
}


class Pair(Product):
    """The first installation, with its database; `second` is the other one."""

    def __init__(self, folder: Path) -> None:
        self.database = embedded_database(folder / "data")
        super().__init__(folder / "data", "--runners", "2", **_SETTINGS)
        try:
            self.wait_until_printed("Ctrl-C stops it")
            self._start_second(folder / "other")
        except BaseException:
            self.stop_both()
            raise

    def _start_second(self, other: Path) -> None:
        other.mkdir()
        for shared in ("git", "blobs"):
            (other / shared).symlink_to(self.data / shared)
        address = f"postgres://{self.database['USER']}@/{quote(self.database['HOST'])}/{self.database['NAME']}"
        self.second = Product(other, "--runners", "2", DATABASE_URL=address, FORGE_URL=self.url, **_SETTINGS)
        self.second.wait_until_printed("Ctrl-C stops it")

    def sql(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        names = {"NAME": "dbname", "USER": "user", "HOST": "host", "PORT": "port"}
        parameters = {names[key]: self.database[key] for key in names}
        with psycopg.connect(**parameters, autocommit=True) as session:
            cursor = session.execute(statement, values)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def logs(self, lines: int = 25) -> str:
        second = f"\n=== second\n{self.second.logs(lines)}" if hasattr(self, "second") else ""
        return super().logs(lines) + second

    def stop_both(self) -> tuple[int, int]:
        second = self.second.stop() if hasattr(self, "second") else 0
        return self.stop(), second


class Traveller(Person):
    """Signs in and pushes at the first, and calls the API at the second; `at_first` stays there for all."""

    def __init__(self, product: Pair, name: str, password: str) -> None:
        super().__init__(product, name, password)
        self.at_first = copy.copy(self)
        self._calls = httpx.Client(base_url=f"{product.second.url}/api/v1/", timeout=60, trust_env=False)
        self._calls.headers["Authorization"] = f"Bearer {self.token}"


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("many"))
    try:
        yield pair
    finally:
        statuses = pair.stop_both()
    assert statuses == (0, 0), f"{pair.printed}\n{pair.second.printed}"


@pytest.fixture(scope="session")
def admin(product: Pair) -> Person:
    return Traveller(product, *product.first_account)

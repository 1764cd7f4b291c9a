"""How does a test take the database away from the product, and give it back?"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from psycopg import sql


class Database:
    """The test's own; its connection stays."""

    def __init__(self) -> None:
        self._name = connection.settings_dict["NAME"]

    def stop(self) -> None:
        """Close it to new connections, and end those of all others: to them it is gone."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            own = cursor.fetchone()[0]
        self._do("ALTER DATABASE {} ALLOW_CONNECTIONS false")
        self._do(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            f" WHERE datname = '{self._name}' AND pid <> {own}"
        )

    def start(self) -> None:
        self._do("ALTER DATABASE {} ALLOW_CONNECTIONS true")

    def _do(self, statement: str) -> None:
        # From beside it: no session may close its own database.
        parameters = {**connection.get_connection_params(), "dbname": "postgres"}
        names = ("host", "port", "user", "password", "dbname")
        given = {name: parameters[name] for name in names if parameters.get(name)}
        with psycopg.connect(**given, autocommit=True) as session:
            session.execute(sql.SQL(statement).format(sql.Identifier(self._name)))  # type: ignore[arg-type]


@pytest.fixture
def database(transactional_db: None) -> Iterator[Database]:
    found = Database()
    yield found
    found.start()

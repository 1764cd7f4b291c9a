"""Are transactions that stay open found, told to the log once, and measured by the part whose they are?"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from ci.lifecycle import database_sessions
from ci.lifecycle.database_sessions import LongTransactions, longest_by_part, part_of

LOG = "ci.lifecycle.database_sessions"


@contextmanager
def opened(name: str) -> Iterator[psycopg.Connection]:
    """A session with an open transaction on the test's database."""
    given = connection.get_connection_params()
    known = {key: given[key] for key in ("dbname", "user", "password", "host", "port") if key in given}
    with psycopg.connect(**known, application_name=name) as other:
        other.execute("SELECT 'the-secret-word'")
        yield other
        other.rollback()


@pytest.fixture
def at_once(settings, transactional_db):
    settings.LONG_TRANSACTION_SECONDS = 0


def test_a_long_transaction_is_told_to_the_log_once(at_once, caplog):
    looking = LongTransactions()
    with opened("a forgotten shell") as other, caplog.at_level(logging.WARNING, LOG):
        looking.look()
        looking.look()
        told = [record.getMessage() for record in caplog.records if "a forgotten shell" in record.getMessage()]
        assert len(told) == 1
        assert f"process {other.info.backend_pid}, idle in transaction" in told[0]
        assert told[0].endswith(": SELECT ?")
        other.rollback()
        other.execute("SELECT 2")
        looking.look()
        assert len([one for one in caplog.records if "a forgotten shell" in one.getMessage()]) == 2
        assert "the-secret-word" not in caplog.text


def test_a_look_that_fails_is_told_and_no_more(at_once, caplog, monkeypatch):
    monkeypatch.setattr(database_sessions, "_LONG", "SELECT 1 / (%s * 0), %s")
    with caplog.at_level(logging.WARNING, LOG):
        LongTransactions().look()
    assert caplog.messages == ["long transactions could not be looked for: DataError"]


def test_the_oldest_of_each_part_is_measured(transactional_db):
    with opened("forge watch 123"), opened("pg_dump"):
        found = longest_by_part()
    assert set(found) == {"web", "hub", "tasks", "watch", "scale", "other"}
    assert found["watch"] > 0
    assert found["other"] > 0
    assert found["scale"] == 0


@pytest.mark.parametrize(
    ("name", "part"),
    [
        *(("forge web", "web"), ("forge hub", "hub"), ("forge watch 123", "watch"), ("forge scale 4", "scale")),
        *(("forge", "other"), ("forge nothing", "other"), ("", "other"), ("forge web x", "other"), ("psql", "other")),
    ],
)
def test_a_name_says_the_part(name, part):
    assert part_of(name) == part


def test_tables_that_turn_over_are_vacuumed_early(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE reloptions @> '{autovacuum_vacuum_scale_factor=0.01}' ORDER BY relname"
        )
        assert [name for (name,) in cursor.fetchall()] == [
            *("ci_heartbeat", "ci_job", "ci_log", "ci_run", "ci_runner", "ci_step"),
        ]

"""Who waits for whom? What may not lock a run must go on while somebody else holds that run."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from ci.models import Run
from tests.playground import Playground


@pytest.fixture
def held_run(committing_playground: Playground) -> Iterator[Run]:
    """A run that another session has locked, while ours waits for no lock longer than a moment."""
    run = committing_playground.run()
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '3s'")
    given = connection.get_connection_params()
    wanted = {name: given[name] for name in ("host", "port", "user", "password", "dbname") if given.get(name)}
    with psycopg.connect(**wanted) as other:
        other.execute("SELECT 1 FROM ci_run WHERE id = %s FOR NO KEY UPDATE", [run.pk])
        yield run
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")


def test_a_claim_and_its_repeat_lock_no_run(held_run: Run, committing_playground: Playground) -> None:
    runner = committing_playground.runner()
    first = committing_playground.assigned(runner, poll_id="one")
    again = committing_playground.assigned(runner, poll_id="one")
    assert first.id == again.id
    assert first.token != again.token


def test_a_log_line_locks_no_run(held_run: Run, committing_playground: Playground) -> None:
    assert committing_playground.assigned().log("one") == 1

"""watch: one leads, others stand by and take over; it acts when a deadline passes, not before it is told of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from ci.lifecycle.watch import LEADER_LOCK, Watch
from ci.models import Heartbeat, Job, Log
from tests.playground import Playground

PATIENCE_SECONDS = 60


def eventually(what: Callable[[], object], said: str) -> None:
    limit = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < limit, f"not within {PATIENCE_SECONDS} s: {said}"
        time.sleep(0.02)


def leaders() -> list[int]:
    """The database sessions that hold the leader's lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND (classid::bigint << 32 | objid::bigint) = %s",
            [LEADER_LOCK],
        )
        return [row[0] for row in cursor.fetchall()]


@pytest.fixture
def start() -> Iterator[Callable[[], Watch]]:
    watches: list[tuple[Watch, threading.Thread]] = []

    def begin() -> Watch:
        watch = Watch()
        thread = threading.Thread(target=lambda: (watch.run(), connection.close()))
        thread.start()
        watches.append((watch, thread))
        return watch

    yield begin
    for watch, _ in watches:
        watch.stop()
    for _, thread in watches:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_it_acts_when_the_deadline_passes(
    committing_playground: Playground, start: Callable[[], Watch], settings: Settings
) -> None:
    settings.ACKNOWLEDGE_SECONDS = 1
    start()
    eventually(leaders, "a leader")
    committing_playground.run()
    assigned = committing_playground.assigned()
    eventually(lambda: assigned.job.state == "queued", "the unacknowledged job is queued again")


def test_a_standby_takes_over_when_the_leader_is_gone(
    committing_playground: Playground, start: Callable[[], Watch]
) -> None:
    first = start()
    eventually(leaders, "a leader")
    (leader,) = leaders()
    start()
    first.stop()
    eventually(lambda: leaders() not in ([], [leader]), "the stand-by leads")


def test_a_leader_that_loses_the_database_comes_back(
    committing_playground: Playground, start: Callable[[], Watch]
) -> None:
    start()
    eventually(leaders, "a leader")
    (leader,) = leaders()
    parameters = connection.get_connection_params()
    dsn = {key: parameters[key] for key in ("dbname", "user", "host", "port", "password") if parameters.get(key)}
    with psycopg.connect(**dsn, autocommit=True) as session:
        session.execute("SELECT pg_terminate_backend(%s)", [leader])
    eventually(lambda: leaders() not in ([], [leader]), "it leads again")
    assert not Job.objects.exists()


def test_who_begins_to_lead_gives_every_runner_the_time_to_be_heard(
    committing_playground: Playground, start: Callable[[], Watch]
) -> None:
    """After an outage of the server or its database each runner was silent, and most are alive."""
    committing_playground.run()
    running = committing_playground.assigned().begin()
    Heartbeat.objects.filter(job=running.id).update(at=timezone.now() - timedelta(days=1))
    committing_playground.run()
    ended = committing_playground.assigned(committing_playground.runner(name="beta")).begin()
    ended.log("one line")
    ended.complete()
    Job.objects.filter(pk=ended.id).update(ended_at=timezone.now() - timedelta(days=1))
    start()
    # The last thing that a sweep does.
    eventually(lambda: Log.objects.filter(job=ended.id).exclude(sealed_at=None).exists(), "the log is sealed")
    assert running.job.state == "running"

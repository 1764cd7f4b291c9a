"""Who acts on deadlines? One leader, which sleeps until the next one; stand-bys take over when it is gone."""

from __future__ import annotations

import logging
import os
import threading
import time
from datetime import timedelta

import psycopg
from django.conf import settings
from django.db import OperationalError, close_old_connections, connection
from django.utils import timezone
from django_q.tasks import async_task

from ci.lifecycle import sweeps
from ci.lifecycle.events import DEADLINE_SET
from forge.git import receive

logger = logging.getLogger(__name__)

# Any number that nothing else in this database locks.
LEADER_LOCK = 0x466F726765
# A stand-by asks this often whether the leader is gone; the leader looks at least this often whatever it was told.
STANDBY_SECONDS = 2.0
LONGEST_SLEEP_SECONDS = 10.0
# Each claim and each acknowledgement sets a deadline, of seconds at least: many words of one are heard at once.
HEAR_SECONDS = 0.25
BACKSTOP = timedelta(seconds=30)
TIDY = timedelta(days=1)


class Watch:
    """`run` returns after `stop`. The lock belongs to a connection of its own: it goes when the process dies."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._losing_from = timezone.now()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        """Lead, or wait to lead, until stopped; a lost database is waited for."""
        while not self._stopped.is_set():
            try:
                with _own_connection() as session:
                    if self._become_leader(session):
                        logger.info("leading")
                        self._lead(session)
            except (psycopg.OperationalError, OperationalError) as error:
                logger.warning("the database is away: %s", error)
                close_old_connections()
                self._stopped.wait(STANDBY_SECONDS)

    def _become_leader(self, session: psycopg.Connection[tuple[object, ...]]) -> bool:
        while not self._stopped.is_set():
            row = session.execute("SELECT pg_try_advisory_lock(%s)", [LEADER_LOCK]).fetchone()
            if row is not None and row[0]:
                return True
            self._stopped.wait(STANDBY_SECONDS)
        return False

    def _lead(self, session: psycopg.Connection[tuple[object, ...]]) -> None:
        session.execute(f"LISTEN {DEADLINE_SET}")
        # Until now perhaps nobody could reach the server or its database: whoever is alive gets the time to say so.
        self._losing_from = timezone.now() + timedelta(seconds=settings.HEARTBEAT_SECONDS)
        last_backstop, last_tidy = timezone.now() - BACKSTOP, timezone.now() - TIDY
        while not self._stopped.is_set():
            close_old_connections()
            sweeps.sweep(losing_from=self._losing_from)
            if timezone.now() - last_backstop >= BACKSTOP:
                sweeps.settle_groups()
                receive.repair()
                last_backstop = timezone.now()
            if timezone.now() - last_tidy >= TIDY:
                async_task("ci.lifecycle.tasks.remove_orphaned_logs")
                last_tidy = timezone.now()
            self._sleep(session)

    def _sleep(self, session: psycopg.Connection[tuple[object, ...]]) -> None:
        """Until the next deadline or a word of a nearer one. In short naps, so that `stop` is heard."""
        due = sweeps.next_deadline(losing_from=self._losing_from)
        longest = LONGEST_SLEEP_SECONDS
        if due is not None:
            longest = min(longest, (due - timezone.now()).total_seconds())
        end = time.monotonic() + max(0.1, longest)
        while not self._stopped.is_set() and (left := end - time.monotonic()) > 0:
            if any(True for _ in session.notifies(timeout=min(left, 0.5), stop_after=1)):
                self._stopped.wait(HEAR_SECONDS)
                for _ in session.notifies(timeout=0):
                    pass
                return


def _own_connection() -> psycopg.Connection[tuple[object, ...]]:
    """A session apart from Django's: it holds the leader's lock and listens, and is never handed back."""
    connection.ensure_connection()
    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold", "client_encoding"):
        parameters.pop(name, None)
    parameters.pop("options", None)
    # Operators see in pg_stat_activity which process leads.
    parameters["application_name"] = f"forge watch {os.getpid()}"
    return psycopg.connect(**parameters, autocommit=True)

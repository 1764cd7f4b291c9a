"""Who does what only one process may do? One leader; stand-bys take over when it is gone."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

import psycopg
from django.db import InterfaceError, OperationalError, close_old_connections, connection

logger = logging.getLogger(__name__)

Session = psycopg.Connection[tuple[object, ...]]

# Held by the scaler that leads. Any number that nothing else in this database locks.
SCALER_LOCK = 0x466F726768

# A stand-by asks this often whether the leader is gone.
STANDBY_SECONDS = 2.0
# Many words of one cause are heard at once.
HEAR_SECONDS = 0.25
_NAP_SECONDS = 0.5


class Leading:
    """`run` returns after `stop`. The lock belongs to a connection of its own: it goes when the process dies."""

    def __init__(self, *, lock: int, name: str) -> None:
        """`lock`: any number that nothing else in this database locks. `name`: what operators see in
        pg_stat_activity of the process that leads."""
        self.stopped = threading.Event()
        self._lock, self._name = lock, name

    def stop(self) -> None:
        self.stopped.set()

    def run(self, lead: Callable[[Session], None]) -> None:
        """Lead, or wait to lead, until stopped; a lost database is waited for."""
        while not self.stopped.is_set():
            try:
                with self._own_connection() as session:
                    if self._become_leader(session):
                        logger.info("leading")
                        lead(session)
            except (psycopg.OperationalError, psycopg.InterfaceError, OperationalError, InterfaceError) as error:
                logger.warning("the database is away: %s", error)
                close_old_connections()
                self.stopped.wait(STANDBY_SECONDS)

    def hear(self, session: Session, seconds: float) -> list[psycopg.Notify]:
        """Sleep so long, or until the database has a word for this process; what it said since the last time.

        In short naps, so that `stop` is heard.
        """
        end = time.monotonic() + max(0.1, seconds)
        while not self.stopped.is_set() and (left := end - time.monotonic()) > 0:
            heard = list(session.notifies(timeout=min(left, _NAP_SECONDS), stop_after=1))
            if heard:
                self.stopped.wait(HEAR_SECONDS)
                return [*heard, *session.notifies(timeout=0)]
        return []

    def _become_leader(self, session: Session) -> bool:
        while not self.stopped.is_set():
            row = session.execute("SELECT pg_try_advisory_lock(%s)", [self._lock]).fetchone()
            if row is not None and row[0]:
                return True
            self.stopped.wait(STANDBY_SECONDS)
        return False

    def _own_connection(self) -> Session:
        """A session apart from Django's: it holds the leader's lock and listens, and is never handed back."""
        connection.ensure_connection()
        parameters = connection.get_connection_params()
        for name in ("cursor_factory", "context", "prepare_threshold", "client_encoding"):
            parameters.pop(name, None)
        parameters.pop("options", None)
        parameters["application_name"] = f"{self._name} {os.getpid()}"
        return psycopg.connect(**parameters, autocommit=True)


def has_leader(lock: int) -> bool:
    """Whether some process holds this lock now (PostgreSQL docs, "pg_locks": a bigint key is shown in two halves)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
            " AND classid = %s AND objid = %s"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            [lock >> 32, lock & 0xFFFFFFFF],
        )
        return bool(cursor.fetchone()[0])


def listen(session: Session, channels: Sequence[str]) -> None:
    """`channels`: constants of the code."""
    for channel in channels:
        session.execute(f"LISTEN {channel}")

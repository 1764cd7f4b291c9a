"""Who acts on deadlines? One leader, which sleeps until the next one; stand-bys take over when it is gone."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone
from django_q.tasks import async_task

from ci.lifecycle import sweeps
from ci.lifecycle.database_sessions import LongTransactions
from ci.lifecycle.events import DEADLINE_SET, LONGEST_SLEEP
from ci.lifecycle.leading import Leading, Session, listen
from forge.git import receive

# Any number that nothing else in this database locks.
LEADER_LOCK = 0x466F726765
BACKSTOP = timedelta(seconds=30)
LOOK_AT_SESSIONS = timedelta(seconds=10)
TIDY = timedelta(days=1)
TIDY_BLOBS = timedelta(hours=1)


class Watch:
    """`run` returns after `stop`."""

    def __init__(self) -> None:
        self._leading = Leading(lock=LEADER_LOCK, name="forge watch")
        self._losing_from = timezone.now()
        self._long_transactions = LongTransactions()

    def stop(self) -> None:
        self._leading.stop()

    def run(self) -> None:
        """Lead, or wait to lead, until stopped; a lost database is waited for."""
        self._leading.run(self._lead)

    def _lead(self, session: Session) -> None:
        listen(session, [DEADLINE_SET])
        # Until now perhaps nobody could reach the server or its database: whoever is alive gets the time to say so.
        self._losing_from = timezone.now() + timedelta(seconds=settings.HEARTBEAT_SECONDS)
        last_backstop, last_tidy = timezone.now() - BACKSTOP, timezone.now() - TIDY
        last_tidy_blobs, last_look = timezone.now() - TIDY_BLOBS, timezone.now() - LOOK_AT_SESSIONS
        while not self._leading.stopped.is_set():
            close_old_connections()
            sweeps.sweep(losing_from=self._losing_from)
            if timezone.now() - last_backstop >= BACKSTOP:
                sweeps.settle_groups()
                receive.repair()
                last_backstop = timezone.now()
            if timezone.now() - last_look >= LOOK_AT_SESSIONS:
                self._long_transactions.look()
                last_look = timezone.now()
            if timezone.now() - last_tidy >= TIDY:
                async_task("ci.lifecycle.tasks.remove_orphaned_logs")
                last_tidy = timezone.now()
            if timezone.now() - last_tidy_blobs >= TIDY_BLOBS:
                async_task("ci.lifecycle.tasks.evict_stale_caches")
                async_task("ci.lifecycle.tasks.tidy_artifacts")
                async_task("ci.lifecycle.tasks.remove_orphaned_blobs")
                last_tidy_blobs = timezone.now()
            self._leading.hear(session, self._longest_sleep())

    def _longest_sleep(self) -> float:
        """Seconds until the next deadline; a word of a nearer one ends the sleep."""
        due = sweeps.next_deadline(losing_from=self._losing_from)
        if due is None:
            return LONGEST_SLEEP.total_seconds()
        return min(LONGEST_SLEEP, due - timezone.now()).total_seconds()

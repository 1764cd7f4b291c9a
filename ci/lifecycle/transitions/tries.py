"""What if the database breaks a transition off? It is tried anew within a bound, but never done twice.

A try that failed before its commit was sent has changed nothing. Where the connection was lost while it was committing,
the database is asked what became of it: by the transaction's number, which it keeps for a long time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db import Error, InterfaceError, OperationalError, connection, transaction

R = TypeVar("R")

RETRIES = 5
# No try begins later than this after the first: whoever waits for the answer is told instead, and may ask again.
RETRY_SECONDS = 10.0
# Serialization failure, deadlock, lock not available: another transaction was in the way, a later try may pass.
RETRIED = frozenset({"40001", "40P01", "55P03"})
_CONFLICT_PAUSE = 0.02
# A server that restarts, even one that must recover, is back before these have added up.
_LOST_PAUSE = 0.2

_NUMBER = "SELECT pg_current_xact_id_if_assigned()::text, now()"
# Statistics start anew when the server recovers from a crash, and only then are numbers given a second time: what is
# said of this one may be about another transaction.
_OUTCOME = "SELECT pg_xact_status(%s::xid8), (SELECT stats_reset < %s FROM pg_stat_wal)"


class OutcomeUnknown(OperationalError):
    """The connection was lost during the commit, and nobody can say whether it was done."""

    def __init__(self) -> None:
        super().__init__("The connection to the database was lost during a commit whose outcome cannot be told.")


@dataclass
class _Try(Generic[R]):
    """One transaction, and how far it came."""

    work: Callable[[], R]
    session: Any = None  # psycopg's connection
    number: str | None = None  # None: it has written nothing, or has not come to its commit
    began: datetime | None = None
    hooks: list[Callable[[], Any]] = field(default_factory=list)

    def run(self) -> R:
        try:
            with transaction.atomic():
                self.session = connection.connection
                result = self.work()
                with connection.cursor() as cursor:
                    cursor.execute(_NUMBER)
                    self.number, self.began = cursor.fetchone()
                self.hooks = [entry[1] for entry in connection.run_on_commit]
        except Error:
            if self.number is None or not self.has_lost() or not self._was_committed():
                raise
            for hook in self.hooks:
                hook()
        return result

    def has_lost(self) -> bool:
        """Whether an error took the connection with it, or there was none to be had. Django may have a new one."""
        held = connection.connection
        return held is None or bool(held.closed) or (self.session is not None and held is not self.session)

    def _was_committed(self) -> bool:
        """Asked over a new connection. Raises OutcomeUnknown."""
        for attempt in range(1, RETRIES + 1):
            connection.close()
            try:
                with connection.cursor() as cursor:
                    cursor.execute(_OUTCOME, [self.number, self.began])
                    state, is_its_own = cursor.fetchone()
            except Error:
                state, is_its_own = "in progress", True
            if not is_its_own or state not in ("committed", "aborted", "in progress"):
                break
            if state != "in progress":
                return bool(state == "committed")
            time.sleep(_LOST_PAUSE * attempt * random.uniform(0.25, 1.0))
        raise OutcomeUnknown


def until_done(work: Callable[[], R]) -> R:
    """Run `work` in a transaction of its own, at most RETRIES times; anew after a deadlock, a serialization failure or
    a lost connection. Raises what the last try raised; OutcomeUnknown at once.
    """
    latest = time.monotonic() + RETRY_SECONDS
    for attempt in range(1, RETRIES + 1):
        this = _Try(work)
        try:
            return this.run()
        except OutcomeUnknown:
            raise
        except Error as error:
            lost = this.has_lost()
            if not lost and getattr(error.__cause__, "sqlstate", None) not in RETRIED:
                raise
            if lost:
                connection.close()
            if attempt == RETRIES or time.monotonic() > latest:
                if isinstance(error, OperationalError | InterfaceError):
                    raise
                raise OperationalError(str(error)) from error  # whatever the database called its goodbye
            time.sleep((_LOST_PAUSE if lost else _CONFLICT_PAUSE) * attempt * random.uniform(0.25, 1.0))
    raise AssertionError("unreachable")

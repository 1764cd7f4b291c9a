"""Which sessions of the database hold on for too long? An open transaction keeps every dead row since it began.

Each claim then steps over the versions of the jobs before it, so that one forgotten transaction slows all of them down.
PostgreSQL docs, "The Cumulative Statistics System": pg_stat_activity.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from ci.lifecycle.shown_statements import shown

logger = logging.getLogger(__name__)

MOST_SHOWN = 20
PARTS = ("web", "hub", "tasks", "watch", "scale")
# As PostgreSQL says it of sessions of other users where our role may not see them.
UNSEEN = "<insufficient privilege>"
_SESSIONS = """
    SELECT pid, application_name, coalesce(usename, ''), coalesce(host(client_addr), ''), coalesce(state, ''),
        concat_ws(': ', wait_event_type, wait_event),
        greatest(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8,
        greatest(extract(epoch FROM clock_timestamp() - state_change), 0)::float8,
        xact_start::text, query
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_LONG = _SESSIONS + " AND xact_start < clock_timestamp() - make_interval(secs => %s) ORDER BY xact_start, pid LIMIT %s"
_IDLE = (
    _SESSIONS
    + " AND state LIKE 'idle in transaction%%' AND state_change < clock_timestamp() - make_interval(secs => %s)"
    + " ORDER BY state_change, pid LIMIT %s"
)
_AGES = """
    SELECT application_name, greatest(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
        AND xact_start IS NOT NULL
"""


@dataclass(frozen=True)
class Transaction:
    """A session whose transaction is open. Times in seconds; `statement` has no values in it."""

    pid: int
    application: str
    user: str
    address: str  # empty: over a socket of the server's machine
    state: str
    waits_for: str
    age: float
    in_state: float
    began: str
    statement: str

    @property
    def who(self) -> str:
        return f"{self.application or 'a program without a name'} as {self.user}" + (
            f" from {self.address}" if self.address else ""
        )


def long_transactions(older_than: float | None = None) -> list[Transaction]:
    """Open for more than so many seconds (LONG_TRANSACTION_SECONDS), the oldest first, at most MOST_SHOWN."""
    seconds = settings.LONG_TRANSACTION_SECONDS if older_than is None else older_than
    return _transactions(_LONG, [seconds, MOST_SHOWN])


def idle_transactions(longer_than: float) -> list[Transaction]:
    """Open and doing nothing for more than so many seconds, the longest first, at most MOST_SHOWN."""
    return _transactions(_IDLE, [longer_than, MOST_SHOWN])


def longest_by_part() -> dict[str, float]:
    """The age in seconds of the oldest open transaction of each part of the product, and of all others; 0 for none."""
    found = dict.fromkeys([*PARTS, "other"], 0.0)
    with connection.cursor() as cursor:
        cursor.execute(_AGES)
        for name, age in cursor.fetchall():
            part = part_of(str(name))
            found[part] = max(found[part], float(age))
    return found


def part_of(application: str) -> str:
    """Whose session it is: `forge watch`, or that of its leader, `forge watch 123`. Anything else is `other`."""
    found = re.fullmatch(r"forge (\w+)(?: \d+)?", application)
    return found[1] if found and found[1] in PARTS else "other"


def _transactions(query: str, values: Sequence[Any]) -> list[Transaction]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        rows = cursor.fetchall()
    return [Transaction(*[*row[:-1], shown(row[-1] or "")]) for row in rows]


class LongTransactions:
    """Tells the log of each long transaction once."""

    def __init__(self) -> None:
        self._told: set[tuple[int, str]] = set()

    def look(self) -> None:
        """A look that fails is logged: who looks has more important things to do."""
        try:
            found = long_transactions()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("long transactions could not be looked for: %s", type(error).__name__)
            return
        for one in found:
            if (one.pid, one.began) not in self._told:
                logger.warning(
                    "a transaction has been open for %.0f s and slows every claim down: %s, process %s, %s%s: %s",
                    one.age,
                    one.who,
                    one.pid,
                    one.state,
                    f", waits for {one.waits_for}" if one.waits_for else "",
                    one.statement,
                )
        # Those that have ended are forgotten, so that this never grows.
        self._told = {(one.pid, one.began) for one in found}

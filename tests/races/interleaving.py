"""How is a race made to happen at a named point, every time? By a rival that acts when the actor is just about to.

The actor runs in the test's own thread and connection. Right before its n-th statement that matches a pattern, the
rival runs to its end on a connection of its own. Where the rival must wait for a lock that the actor holds, it is left
waiting (seen in pg_stat_activity), and has its turn once the actor has committed.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

# Named points of a transition, by the statement that it is about to send.
LOCK_RUN = r'FROM "ci_run" .*FOR NO KEY UPDATE'
LOCK_JOB = r'FROM "ci_job" .*FOR NO KEY UPDATE'
LOCK_RUNNER = r'FROM "ci_runner" .*FOR NO KEY UPDATE'
WRITE_PHASE = r'UPDATE "ci_runner" SET .*"phase" = '
LOCK_GROUP = r'FROM "ci_concurrencygroup" .*FOR NO KEY UPDATE'
TAKE_JOB = r"UPDATE ci_job SET state = 'assigned'"
WRITE_JOB = r'UPDATE "ci_job" SET'
WRITE_RUN = r'UPDATE "ci_run" SET'
WRITE_RUNNER = r'UPDATE "ci_runner" SET'
WRITE_EVENT = r'INSERT INTO "ci_event"'
WRITE_HEARTBEAT = r'(UPDATE|INSERT INTO) "ci_heartbeat"'

PATIENCE_SECONDS = 30.0


class Rival:
    """One call on a thread and connection of its own; `result` or `error` afterwards."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        # The statement that it was seen to wait in, "" when it never waited.
        self.waited_in = ""
        self._act = act
        self._backend: int | None = None
        self._thread = threading.Thread(target=self._run, name="rival")

    def start(self) -> None:
        """Until it has ended, or is seen to wait for a lock."""
        self._thread.start()
        limit = time.monotonic() + PATIENCE_SECONDS
        while self._thread.is_alive():
            self._thread.join(0.005)
            if self._backend is not None and (statement := _waiting_statement(self._backend)):
                self.waited_in = statement
                return
            assert time.monotonic() < limit, "the rival neither ended nor waits for a lock"

    def join(self) -> None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the rival still waits: is there a deadlock?"

    def _run(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                self._backend = cursor.fetchone()[0]
            self.result = self._act()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()


def _waiting_statement(backend: int) -> str:
    # Over a connection of its own: the test's is inside the statement that is held up.
    seen: list[str] = []

    def look() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT query FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'", [backend])
            row = cursor.fetchone()
            seen.append(row[0] if row else "")
        connection.close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return seen[0]


@contextmanager
def rival_before(point: str, act: Callable[[], Any], *, nth: int = 1) -> Iterator[Rival]:
    """Inside, the first transition that reaches `point` for the n-th time meets the rival there. It must be reached."""
    rival = Rival(act)
    pattern = re.compile(point, re.DOTALL)
    count = 0

    def hold_up(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal count
        if pattern.search(sql):
            count += 1
            if count == nth:
                rival.start()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(hold_up):
        try:
            yield rival
        finally:
            if count >= nth:
                rival.join()
    assert count >= nth, f"the point was reached {count} times, not {nth}: {point}"


@contextmanager
def amid(point: str, act: Callable[[], Any], *, nth: int = 1) -> Iterator[None]:
    """Inside, `act` is called right before the n-th statement that matches `point`, on the actor's own connection.

    As if another connection had committed there; so only for points at which the actor holds no lock that `act` wants.
    What the actor's transaction rolls back is rolled back of `act` too. The point need not be reached.
    """
    pattern = re.compile(point, re.DOTALL)
    count = 0

    def hold_up(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal count
        if pattern.search(sql):
            count += 1
            if count == nth:
                act()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(hold_up):
        yield

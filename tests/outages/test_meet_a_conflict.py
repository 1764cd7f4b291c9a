"""Deadlocks and serialization failures: tried anew within a bound, then answered 503. All of them are real ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from ci.api.errors import describe
from ci.lifecycle.transitions import tries as tries_of_transitions
from ci.lifecycle.transitions.guard import guarded, lock_run
from ci.lifecycle.transitions.tries import RETRIES
from ci.models import Run
from tests.playground import Playground
from tests.races.interleaving import LOCK_RUN, rival_before


@pytest.fixture
def runs(committing_playground: Playground) -> tuple[int, int]:
    first = committing_playground.run().pk
    return first, committing_playground.run().pk


def crossing(first: int, second: int) -> Callable[[], None]:
    """Locks the two in the other order, and leaves it to the actor to notice the deadlock."""

    def act() -> None:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL deadlock_timeout = '60s'")
            lock_run(second)
            lock_run(first)

    return act


def test_the_victim_of_a_deadlock_is_tried_anew(runs: tuple[int, int]) -> None:
    first, second = runs
    tries = []

    @guarded
    def both() -> str:
        tries.append(1)
        lock_run(first)
        lock_run(second)
        return "done"

    with rival_before(LOCK_RUN, crossing(first, second), nth=2) as rival:
        assert both() == "done"
    assert rival.error is None and rival.waited_in
    assert len(tries) == 2


def test_a_serialization_failure_is_tried_anew(runs: tuple[int, int]) -> None:
    seen = []

    @guarded
    def rename() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        run = Run.objects.get(pk=runs[0])
        seen.append(run.title)
        Run.objects.filter(pk=run.pk).update(title=f"{run.title}, renamed")

    with rival_before(
        r'UPDATE "ci_run" SET "title"', lambda: Run.objects.filter(pk=runs[0]).update(title="By another")
    ) as rival:
        rename()
    assert rival.error is None
    assert len(seen) == 2
    assert Run.objects.get(pk=runs[0]).title == "By another, renamed"


def test_what_never_gets_through_is_answered_with_a_time_to_come_back(runs: tuple[int, int]) -> None:
    tries = []

    @guarded
    def stubborn() -> None:
        tries.append(1)
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        run = Run.objects.get(pk=runs[0])
        _elsewhere(lambda: Run.objects.filter(pk=run.pk).update(title=f"Title {len(tries)}"))
        Run.objects.filter(pk=run.pk).update(title="Mine")

    with pytest.raises(OperationalError) as failed:
        stubborn()
    assert len(tries) == RETRIES
    answer = describe(failed.value)
    assert answer is not None
    assert (answer.status, answer.body["code"]) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert Run.objects.get(pk=runs[0]).title == f"Title {RETRIES}"


def test_no_try_begins_when_the_time_is_over(runs: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tries_of_transitions, "RETRY_SECONDS", -1.0)
    tries = []
    with _held(runs[0]), pytest.raises(OperationalError):
        _impatient(runs[0], tries)
    assert len(tries) == 1


def test_a_lock_that_was_not_to_be_had_is_tried_for_anew(runs: tuple[int, int]) -> None:
    tries: list[int] = []
    with _held(runs[0]) as release:
        _impatient(runs[0], tries, before_the_second=release)
    assert len(tries) == 2


def test_within_another_transaction_only_the_whole_is_tried_anew(runs: tuple[int, int]) -> None:
    """Its locks and its snapshot are the other's: what has failed there fails there again."""
    tries: list[int] = []
    with _held(runs[0]), transaction.atomic():
        with pytest.raises(OperationalError):
            _impatient(runs[0], tries)
        assert len(tries) == 1


def test_another_error_is_told_at_once(runs: tuple[int, int]) -> None:
    tries = []

    @guarded
    def wrong() -> None:
        tries.append(1)
        Run.objects.filter(pk=runs[0]).update(conclusion="success")

    with pytest.raises(IntegrityError, match="run_ended_has_a_conclusion"):
        wrong()
    assert len(tries) == 1


@guarded
def _impatient(run_id: int, tries: list[int], *, before_the_second: Callable[[], None] | None = None) -> None:
    tries.append(1)
    if len(tries) == 2 and before_the_second is not None:
        before_the_second()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '1ms'")
    lock_run(run_id)


@contextmanager
def _held(run_id: int) -> Iterator[Callable[[], None]]:
    """Inside, another connection has locked the run, until what this gives is called."""
    locked, free = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            lock_run(run_id)
            locked.set()
            free.wait(60)
        connection.close()

    thread = threading.Thread(target=hold)

    def release() -> None:
        free.set()
        thread.join()

    thread.start()
    try:
        assert locked.wait(60)
        yield release
    finally:
        release()


def _elsewhere(act: Callable[[], Any]) -> None:
    """On a connection of its own, and committed when this returns."""

    def run() -> None:
        act()
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

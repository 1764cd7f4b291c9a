"""A connection that is lost in the middle of a transition: the transition is done, once, and its answer is the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from ci.lifecycle.transitions import tries
from ci.lifecycle.transitions.guard import guarded
from ci.lifecycle.transitions.tries import RETRIES, OutcomeUnknown
from ci.models import Event, Log
from forge.models import Repository
from tests.outages.line import over_a_line
from tests.playground import Playground
from tests.races.interleaving import rival_before
from tests.races.model import World
from tests.races.test_pairs import ANY_LOCK, CALLS, SCALE_DOWN, Scene, finish

BEFORE_THE_COMMIT = r"pg_current_xact_id_if_assigned"
POINTS = {
    "before the lock": ANY_LOCK,
    # When a poll was last seen is noted before any transition begins.
    "before the write": r'^\s*(WITH moved AS|UPDATE|INSERT INTO|DELETE FROM)\s+"?(ci_|\()(?!runner" SET "last_seen)',
    "before the commit": BEFORE_THE_COMMIT,
}


@pytest.fixture(autouse=True)
def own_connection(transactional_db: None) -> Iterator[None]:
    yield
    connection.close()


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def terminator(pid: int) -> Callable[[], None]:
    """Ends that database session, and returns once it is gone."""

    def act() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])

    return act


def scene_of(world: World, name: str) -> tuple[Scene, Callable[[], Any]]:
    state, prepare, act = CALLS[name]
    scene = Scene(world, state, "hasty group", single_use=name == SCALE_DOWN)
    prepare(scene)
    return scene, lambda: act(scene)


def traces(scene: Scene, seen: int) -> list[tuple[str, str, str]]:
    """What was noted since, and what the log holds: done twice, both would say so."""
    events = Event.objects.filter(pk__gt=seen).order_by("pk").values_list("kind", "from_state", "to_state")
    lines = Log.objects.filter(pk=scene.job.pk).values_list("lines", flat=True).first()
    return [*events, ("log", "", str(lines))]


def undisturbed(world: World, name: str) -> list[tuple[str, str, str]]:
    scene, act = scene_of(world, name)
    seen = Event.objects.order_by("-pk").values_list("pk", flat=True)[0]
    act()
    found = traces(scene, seen)
    finish(world)
    return found


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", CALLS)
def test_a_session_that_is_ended_is_followed_by_another(name: str, point: str) -> None:
    world = World()
    expected = undisturbed(world, name)
    scene, act = scene_of(world, name)
    seen = Event.objects.order_by("-pk").values_list("pk", flat=True)[0]
    ended = backend()
    with rival_before(POINTS[point], terminator(ended)) as rival:
        act()
    assert rival.error is None
    assert backend() != ended, "the session was to be lost"
    assert traces(scene, seen) == expected
    world.check()


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("name", CALLS)
def test_a_commit_whose_answer_is_lost_is_neither_lost_nor_repeated(name: str, where: str) -> None:
    world = World()
    expected = undisturbed(world, name)
    scene, act = scene_of(world, name)
    seen = Event.objects.order_by("-pk").values_list("pk", flat=True)[0]
    with over_a_line() as line:
        connection.ensure_connection()
        line.cut(where)
        act()
    assert line.cuts == 1
    assert traces(scene, seen) == expected
    world.check()


@guarded
def rename(repository: Repository) -> None:
    Repository.objects.filter(pk=repository.pk).update(description="renamed")
    transaction.on_commit(lambda: done.append(repository.pk))


done: list[int] = []


def test_what_was_to_follow_the_commit_follows_it(committing_playground: Playground) -> None:
    repository = committing_playground.repository
    done.clear()
    with over_a_line() as line:
        connection.ensure_connection()
        line.cut("after")
        rename(repository)
    assert done == [repository.pk]


def test_after_a_crash_the_number_of_a_commit_proves_nothing(committing_playground: Playground) -> None:
    """A server that recovers gives numbers again whose transactions it has lost: another's end is not this one's."""
    repository = committing_playground.repository

    def as_a_crash_does() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_reset_shared('wal')")

    with over_a_line() as line:
        connection.ensure_connection()
        line.cut("after")
        with rival_before(BEFORE_THE_COMMIT, as_a_crash_does), pytest.raises(OutcomeUnknown):
            rename(repository)
    assert line.cuts == 1


def test_the_tries_are_bounded(committing_playground: Playground) -> None:
    sessions = []

    @guarded
    def never() -> None:
        sessions.append(backend())
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(OperationalError):
        never()
    assert len(set(sessions)) == len(sessions) == RETRIES


def test_a_session_that_the_database_ended_for_idling_is_answered_as_lost(
    committing_playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL calls this one an internal error: whoever asked is told to come back all the same."""
    monkeypatch.setattr(tries, "RETRY_SECONDS", -1.0)

    @guarded
    def idle() -> None:
        own = backend()
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = '1ms'")
        thread = threading.Thread(target=until_gone, args=[own])
        thread.start()
        thread.join()
        backend()

    with pytest.raises(OperationalError, match="idle-in-transaction"):
        idle()


def until_gone(pid: int) -> None:
    limit = time.monotonic() + 60
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid])
        while cursor.fetchone()[0]:
            assert time.monotonic() < limit
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid])
    connection.close()


def test_no_job_fails_because_the_database_broke_off_its_preparation(committing_playground: Playground) -> None:
    committing_playground.run()
    runner = committing_playground.runner()
    with rival_before("FROM ci_secret", terminator(backend())) as rival:
        assigned = committing_playground.assigned(runner)
    assert rival.error is None
    assert assigned.job.state == "assigned"

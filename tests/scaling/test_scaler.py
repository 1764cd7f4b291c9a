"""The scaler as it runs: one leads, it is woken by what happens, and a call that hangs holds up nobody else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count

import pytest
from django.db import OperationalError, connection
from pytest_django.fixtures import Settings

from ci.lifecycle import transitions
from ci.lifecycle.runner_sets import save_runner_set
from ci.models import Event, JobState, Runner, RunnerSet
from ci.scaling.launchers.protocol import Launch
from ci.scaling.scaler import LEADER_LOCK, Scaler
from ci.scaling.workers import IN_A_LANE, Workers
from tests.scaling.world import AtOnce, World

PATIENCE_SECONDS = 60


def eventually(what: Callable[[], object], said: str) -> None:
    limit = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < limit, f"not within {PATIENCE_SECONDS} s: {said}"
        time.sleep(0.02)


def leaders() -> list[str]:
    """The names of the database sessions that hold the leader's lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)"
            " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
            " AND (classid::bigint << 32 | objid::bigint) = %s",
            [LEADER_LOCK],
        )
        return [row[0] for row in cursor.fetchall()]


@pytest.fixture
def world(committing_world: World, settings: Settings) -> World:
    # Nothing happens because time passed: what is seen was caused by being woken.
    settings.SCALE_SWEEP_SECONDS = 3600
    settings.SCALE_POLL_SECONDS = 0.2
    return committing_world


@pytest.fixture
def run(world: World) -> Iterator[Callable[[], Scaler]]:
    scalers: list[tuple[Scaler, threading.Thread]] = []

    def begin() -> Scaler:
        scaler = Scaler(launcher_of=world.launchers.__getitem__)
        thread = threading.Thread(target=lambda: (scaler.run(), connection.close()))
        thread.start()
        scalers.append((scaler, thread))
        return scaler

    yield begin
    for scaler, _ in scalers:
        scaler.stop()
    for _, thread in scalers:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_one_leads_and_another_takes_over(world: World, run: Callable[[], Scaler]) -> None:
    """Row 42. Who has the lock can be seen. That nobody else leads meanwhile: tests/lifecycle/test_lead.py."""
    world.make_set(minimum=1)
    first = run()
    eventually(lambda: len(world.launcher.running) == 1, "the first scales")
    assert [name.startswith("forge scale ") for name in leaders()] == [True]
    run()
    first.stop()
    world.edit(minimum=2)
    eventually(lambda: len(world.launcher.running) == 2, "the second scales")
    assert len(leaders()) == 1


def test_a_queued_job_an_end_and_an_edit_wake_it(world: World, run: Callable[[], Scaler]) -> None:
    """Row 11. Each on commit, without a sweep."""
    world.make_set(maximum=1)
    run()
    eventually(leaders, "a leader")
    eventually(lambda: world.refreshed().assigned == 0, "a first look")
    world.queue(2)
    eventually(lambda: world.work_all() == 1, "a runner for the queued job")
    eventually(lambda: world.work_all() == 1, "a runner for the next job, once the first process is gone")
    eventually(lambda: world.taking_room == 0, "the last one is gone")
    world.edit(minimum=1)
    eventually(lambda: len(world.launcher.running) == 1, "an idle runner")


def test_the_next_deadline_wakes_it(world: World, run: Callable[[], Scaler], settings: Settings) -> None:
    """Row 17. What must go after the calm time goes then, though nothing else happens."""
    settings.SCALE_CALM_SECONDS = 1
    world.make_set(minimum=1)
    run()
    eventually(lambda: len(world.launcher.running) == 1, "an idle runner")
    eventually(lambda: world.refreshed() and all(runner.handle for runner in world.runners), "its handle")
    world.poll_all()
    world.edit(minimum=0)
    eventually(lambda: world.taking_room == 0, "it is gone")


def test_a_launcher_that_hangs_holds_up_no_other_set(world: World, run: Callable[[], Scaler]) -> None:
    """Row 44."""
    world.make_set(minimum=8, name="hangs")
    release = threading.Event()
    real = world.launcher.start

    def hang(launch: Launch) -> str:
        if launch.set_id == hanging:
            release.wait(PATIENCE_SECONDS)
        return real(launch)

    hanging = world.set.pk
    world.launcher.start = hang  # type: ignore[method-assign]
    other = save_runner_set(
        runner_set_id=None,
        fields={"name": "fine", "labels": ["fine"], "minimum": 8, "maximum": 8},
        version=None,
        actor=world.playground.operator,
    )
    run()
    try:
        eventually(lambda: len(world.launcher.running) == 8, "the other set's runners")
        assert {process.set_id for process in world.launcher.list()} == {other.pk}
    finally:
        release.set()
    eventually(lambda: len(world.launcher.running) == 16, "those that hung")


def test_a_stop_that_hangs_holds_up_nothing_of_its_set(
    world: World, run: Callable[[], Scaler], settings: Settings
) -> None:
    """Row 35. stop() hangs, row reaped. (TestRunnerUnregistrationQueuePushIsIndependentOfTheService.)"""
    settings.SCALE_CLEANUP_SECONDS = 1
    world.make_set(minimum=1, maximum=1)
    release = threading.Event()
    world.launcher.before_stop = lambda: release.wait(PATIENCE_SECONDS) and None
    run()
    eventually(lambda: [one for one in world.runners if one.handle], "a runner")
    (first,) = world.runners
    try:
        transitions.retire_runner(runner_id=first.pk, reason="the test")
        eventually(lambda: Event.objects.filter(kind="runner_given_up", runner=first).exists(), "its row is reaped")
        eventually(lambda: [one for one in world.runners if one.handle and one.pk != first.pk], "another runner")
    finally:
        release.set()


def test_what_a_call_says_while_the_scaler_counts_its_sleep_does_not_break_it(world: World) -> None:
    """A stop came to its end just then, for a set that was not looked at yet."""

    class Now(float):
        """A moment at which, as often as it is compared, something else happens."""

        def __rsub__(self, other: float) -> float:
            number = next(numbers)
            stop = transitions.Stop(runner_id=number, attempt=1, launcher="local", handle="h", force=False)
            scaler._stop(number, stop)
            return float(other) - float(self)

    numbers = count(5000)
    world.make_set(minimum=2)
    world.scale()
    scaler = Scaler(launcher_of=world.launchers.__getitem__, workers=AtOnce(), clock=lambda: Now(world.clock))
    scaler.step()
    assert scaler._sleep_seconds() >= 0
    assert next(numbers) > 5001
    assert scaler._sleep_seconds() == 0  # what was stopped is looked at now


def test_a_set_that_cannot_be_scaled_keeps_no_other_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 44. A bad row between two good ones."""
    sets = [world.make_set(name=name, minimum=1) for name in ("one", "broken", "two")]
    real = transitions.scale_set

    def scale(*, set_id: int, losing_from: datetime | None) -> transitions.Scaled:
        if set_id == sets[1].pk:
            raise ZeroDivisionError("a fault")
        return real(set_id=set_id, losing_from=losing_from)

    monkeypatch.setattr(transitions, "scale_set", scale)
    world.look()
    made = Runner.objects.order_by("runner_set").values_list("runner_set", flat=True)
    assert list(made) == [sets[0].pk, sets[2].pk]
    monkeypatch.undo()
    world.look()
    assert Runner.objects.filter(runner_set=sets[1]).count() == 1


def test_a_database_that_is_away_is_told_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """TestScaleUpServicedByFinishedRunnerCleanup: fails loudly when it cannot read past the cache (there is none)."""
    world.make_set(minimum=1)

    def away(**_: object) -> transitions.Scaled:
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(transitions, "scale_set", away)
    world.scaler.wake_all()
    with pytest.raises(OperationalError):
        world.scaler.step()
    assert not Runner.objects.exists()


def test_a_job_that_was_cancelled_before_a_runner_came_makes_none(world: World) -> None:
    """Row 38. Cancelled while queued, while assigned and while running; each time the set follows."""
    world.make_set()
    queued, assigned, running = world.queue(3)
    alice = world.playground.alice
    transitions.cancel_job(job_id=queued.pk, actor=alice)
    assert world.scale().desired == 2
    first, second = world.poll_all()
    second.begin()
    transitions.cancel_job(job_id=first.id, actor=alice)
    transitions.cancel_job(job_id=second.id, actor=alice)
    assert (first.heartbeat().cancel, second.heartbeat().cancel) == ("owner", "owner")
    for one in (first, second):
        assert one.complete("cancelled").conclusion == "cancelled"
        world.launcher.end(world.handle(one.runner), 0)
    world.scale(times=2)
    assert (world.refreshed().desired, world.taking_room) == (0, 0)
    assert {first.id, second.id} == {assigned.pk, running.pk}


def test_a_poll_of_a_sets_runner_is_repeated_until_it_is_acknowledged(world: World) -> None:
    """Rows 39 and 40."""
    world.make_set()
    world.queue(2)
    world.scale()
    runner = world.runners[0]
    first = world.playground.fetch(runner, poll_id="one")
    again = world.playground.fetch(runner, poll_id="one")
    assert first is not None
    assert again is not None
    assert (again.id, again.token != first.token) == (first.id, True)
    again.heartbeat()
    assert again.job.state == JobState.RUNNING
    assert world.playground.fetch(runner, poll_id="one") is None


def test_workers_make_few_calls_of_a_lane_at_once_and_each_once() -> None:
    """TestRunnerUnregistrationQueueDeduplicates, TestRunnerUnregistrationQueueDoesNotParkBehindDelayedWork."""
    workers, going, release = Workers(), [], threading.Event()

    def call(number: int) -> None:
        going.append(number)
        release.wait(PATIENCE_SECONDS)

    for number in [*range(IN_A_LANE + 2)] * 2:
        workers.submit("lane", number, lambda number=number: call(number))  # type: ignore[misc]
    workers.submit("another", 0, lambda: call(100))
    eventually(lambda: len(going) == IN_A_LANE + 1, "as many as a lane has, and the other lane's")
    assert sorted(going) == [*range(IN_A_LANE), 100]
    assert workers.is_busy("lane", 0)
    assert not workers.is_busy("lane", IN_A_LANE)
    release.set()
    eventually(lambda: len(going) == IN_A_LANE + 3, "the rest")
    assert sorted(going) == [*range(IN_A_LANE + 2), 100]
    workers.close(PATIENCE_SECONDS)
    assert not workers.is_busy("lane", 0)


def test_a_call_that_fails_makes_room_for_the_next() -> None:
    workers, done = Workers(), threading.Event()

    def fail() -> None:
        raise ZeroDivisionError("a fault")

    for number in range(IN_A_LANE):
        workers.submit("lane", number, fail)
    workers.submit("lane", "last", done.set)
    assert done.wait(PATIENCE_SECONDS)


def test_a_set_on_another_machine_is_told_the_public_address(world: World, settings: Settings) -> None:
    settings.SCALE_URL, settings.SCALE_LOCAL_URL = "https://forge.example.org", "http://127.0.0.1:8000"
    world.launchers["docker"] = world.launcher
    world.make_set(minimum=1)
    world.scale()
    world.make_set(name="far", minimum=1, launcher="docker", template={"image": "debian:12"})
    world.scale()
    urls = {one.launch.set_id: one.launch.url for one in world.launcher.started.values()}
    names = dict(RunnerSet.objects.values_list("pk", "name"))
    assert {names[pk]: url for pk, url in urls.items()} == {
        "pool": "http://127.0.0.1:8000",
        "far": "https://forge.example.org",
    }

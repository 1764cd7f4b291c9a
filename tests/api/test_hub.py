"""Whom does the hub wake? Its decisions alone, without a database; the rest is in test_wait.py."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from ci.waiting.hub import MOST_PASSES, Hub, Target, Waiter

LINUX, GPU = 1, 2
OURS, THEIRS = {"repository": 7, "owner": 70}, {"repository": 8, "owner": 80}


@pytest.fixture
def hub() -> Hub:
    hub = Hub({})
    hub._know([(LINUX, ["linux"]), (GPU, ["gpu", "linux"])])
    return hub


@contextlib.contextmanager
def idle(hub: Hub, *waiters: Waiter) -> Iterator[None]:
    """The waiters have looked in vain and wait."""
    with contextlib.ExitStack() as stack:
        for waiter in waiters:
            stack.enter_context(hub.waiting(waiter))
            hub.look(waiter)
            hub.rest(waiter)
        yield


def waiter(runner: int, *labels: str, **options: object) -> Waiter:
    return Waiter(runner=runner, labels=frozenset(labels or {"linux"}), **options)


def woken(*waiters: Waiter) -> list[int]:
    return [one.runner for one in waiters if one.event.is_set()]


def test_one_job_wakes_one_of_many(hub):
    many = [waiter(number) for number in range(100)]
    with idle(hub, *many):
        hub.wake(Target(LINUX))
        assert len(woken(*many)) == 1
        hub.wake(Target(LINUX))
        assert len(woken(*many)) == 2


def test_the_one_that_waits_longest_is_woken(hub):
    first, second, third = waiter(1), waiter(2), waiter(3)
    with idle(hub, first, second, third):
        hub.look(first)
        hub.rest(first)
        hub.wake(Target(LINUX))
        assert woken(first, second, third) == [2]


def test_only_who_has_all_labels_is_woken(hub):
    few, more, other = waiter(1, "linux"), waiter(2, "linux", "gpu", "big"), waiter(3, "gpu")
    with idle(hub, few, more, other):
        hub.wake(Target(GPU))
        assert woken(few, more, other) == [2]


@pytest.mark.parametrize(
    ("scope", "target", "serves"),
    [
        ({}, OURS, True),
        ({"repository": 7}, OURS, True),
        ({"repository": 7}, THEIRS, False),
        ({"owner": 70}, OURS, True),
        ({"owner": 70}, THEIRS, False),
        ({"repository": 7}, {}, True),
        ({"owner": 70}, {}, True),
    ],
)
def test_only_who_serves_the_repository_is_woken(hub, scope, target, serves):
    one = waiter(1, **scope)
    with idle(hub, one):
        hub.wake(Target(LINUX, **target))
        assert woken(one) == ([1] if serves else [])


def test_a_paused_one_is_not_woken_until_a_runner_is_resumed(hub):
    one = waiter(1, paused=True)
    with idle(hub, one):
        hub.wake(Target(LINUX))
        assert woken(one) == []
        hub._wake_paused()
        assert woken(one) == [1]


def test_who_looks_while_a_job_is_queued_looks_again(hub):
    """Its look may have begun before the job was there."""
    one = waiter(1)
    with hub.waiting(one):
        hub.look(one)
        hub.wake(Target(LINUX))
        hub.rest(one)
        assert woken(one) == [1]
        assert hub.look(one) == {Target(LINUX): frozenset()}
        hub.rest(one)
        assert woken(one) == []


def test_an_idle_one_is_woken_before_one_that_looks(hub):
    looking, resting = waiter(1), waiter(2)
    with idle(hub, looking, resting):
        hub.look(looking)
        hub.wake(Target(LINUX))
        hub.rest(looking)
        assert woken(looking, resting) == [2]


def test_a_wake_up_is_passed_on_by_who_leaves_without_looking(hub):
    first, second = waiter(1), waiter(2)
    with idle(hub, second):
        with idle(hub, first):
            hub.look(second)
            hub.wake(Target(LINUX))
            hub.rest(second)
            assert woken(first, second) == [1]
        assert woken(second) == [2]
        assert hub.look(second) == {Target(LINUX): frozenset({1})}


def test_a_wake_up_goes_round_once(hub):
    one, other = waiter(1), waiter(2)
    with idle(hub, one, other):
        hub.wake(Target(LINUX), frozenset({1}))
        assert woken(one, other) == [2]
        hub.look(other)
        hub.rest(other)
        hub.wake(Target(LINUX), frozenset({1, 2}))
        assert woken(one, other) == []


def test_a_wake_up_that_nobody_can_use_ends(hub):
    one = waiter(1000)
    with idle(hub, one):
        hub.wake(Target(LINUX), frozenset(range(MOST_PASSES + 1)))
        assert woken(one) == []


def test_a_newer_poll_of_a_runner_takes_the_place_of_the_older(hub):
    older, newer = waiter(1), waiter(1)
    with idle(hub, older):
        with idle(hub, newer):
            assert older.replaced
            assert woken(older) == [1]
            hub.rest(older)
            hub.wake(Target(LINUX))
            assert woken(newer) == [1]
        assert hub._waiters == {}


def test_nothing_is_left_of_those_who_left(hub):
    with idle(hub, waiter(1), waiter(2, "linux", "gpu")), hub.waiting(waiter(3)):
        pass
    assert (hub._waiters, hub._idle, hub._looking) == ({}, {}, {})
    with hub.watching(5), hub.watching(5):
        pass
    assert hub._watched == {}


def test_closing_wakes_everybody_and_then_nobody(hub):
    one = waiter(1)
    with idle(hub, one), hub.watching(5) as changed:
        hub.close()
        assert woken(one) == [1]
        assert changed.is_set()
        hub.look(one)
        hub.wake(Target(LINUX))
        assert woken(one) == []


@pytest.mark.parametrize("payload", ["5", "5:7:70"])
def test_a_change_wakes_those_who_watch_that_job(hub, payload):
    with hub.watching(5) as five, hub.watching(6) as six:
        hub._changed(payload)
        assert (five.is_set(), six.is_set()) == (payload == "5", False)


def test_without_a_database_it_keeps_trying(hub, caplog):
    async def listen():
        hub._parameters = {"host": "/nowhere", "dbname": "x"}
        hub.start()
        while "tries again" not in caplog.text:
            await asyncio.sleep(0.01)
        await hub.stop()

    asyncio.run(asyncio.wait_for(listen(), 60))


def test_a_burst_of_one_notification_reaches_everybody_when_each_gets_a_job(hub):
    """A matrix queues all its legs at once, and PostgreSQL tells of them once."""
    many = [waiter(number) for number in range(5 * MOST_PASSES)]
    with contextlib.ExitStack() as stack:
        for one in many:
            stack.enter_context(idle(hub, one))
        hub.wake(Target(LINUX))
        served: set[int] = set()
        while ready := [one for one in many if one.event.is_set() and one.runner not in served]:
            pending = hub.look(ready[0])
            served.add(ready[0].runner)
            hub._forget(ready[0])  # it has its job, and waits no more
            for target, tried in pending.items():
                hub.pass_on(target, tried, ready[0], took_one=True)
        assert served == {one.runner for one in many}


def test_what_nobody_can_take_is_left_to_the_sweep(hub):
    many = [waiter(number) for number in range(5 * MOST_PASSES)]
    with idle(hub, *many):
        hub.wake(Target(LINUX))
        looked: list[int] = []
        while ready := [one for one in many if one.event.is_set()]:
            pending = hub.look(ready[0])
            looked.append(ready[0].runner)
            hub.rest(ready[0])
            for target, tried in pending.items():
                hub.pass_on(target, tried, ready[0], took_one=False)
        assert len(looked) == len(set(looked)) == MOST_PASSES + 1

"""Paused runners of a set: kept from jobs by a person, they are none that a job can count on."""

from __future__ import annotations

import pytest

from ci.lifecycle import demand, set_waiting
from ci.lifecycle.registration import pause_runner
from ci.lifecycle.set_counts import counted
from ci.models import Runner, RunnerSet
from tests.scaling.world import World, is_idle


def pause(world: World, runner: Runner, *, paused: bool = True) -> None:
    pause_runner(runner_id=runner.pk, paused=paused, actor=world.playground.operator)


def paused_one(world: World, **fields: int) -> Runner:
    """An idle runner, and then a person pauses it."""
    world.make_set(minimum=1, **fields)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    pause(world, runner)
    return runner


def test_another_runner_comes_for_the_job(world: World) -> None:
    runner = paused_one(world, maximum=3)
    world.edit(minimum=0)
    (job,) = world.queue(1)
    world.scale()
    assert len(world.runners) == 2
    assert [assigned.id for assigned in world.poll_all()] == [job.pk]
    row = counted(RunnerSet.objects.all()).get()
    assert (row.busy, row.idle, row.starting, row.leaving) == (1, 0, 0, 0)
    assert Runner.objects.get(pk=runner.pk).paused


def test_it_takes_up_room_and_that_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    paused_one(world, maximum=1)
    world.queue(1)
    world.scale(times=2)
    assert world.taking_room == 1
    monkeypatch.setattr(set_waiting, "has_leader", lambda lock: True)
    runner_set = world.refreshed()
    has = set_waiting.counts(demand.look(runner_set))
    assert (has.idle, has.starting, has.paused, has.ending) == (0, 0, 1, 0)
    told = set_waiting.for_owner(runner_set, has)
    assert told == "Its maximum of 1 runner is reached, 1 of which is paused; 1 job waits."


def test_it_is_not_taken_away_from_whoever_paused_it(world: World) -> None:
    """For it is not too much either."""
    runner = paused_one(world)
    world.edit(minimum=0)
    world.pass_time(61)
    world.poll_all()
    world.scale(times=2)
    assert runner.pk in [one.pk for one in world.runners]


def test_it_goes_with_its_revision(world: World) -> None:
    """Row 31."""
    runner = paused_one(world)
    world.edit(template={"work": "/srv/new"})
    world.scale(times=2)
    assert runner.pk in [one.pk for one in world.ended]


def test_resumed_it_counts_again(world: World) -> None:
    runner = paused_one(world)
    world.scale()
    assert len(world.runners) == 2
    pause(world, runner, paused=False)
    world.pass_time(61)
    world.poll_all()
    world.scale(times=2)
    (left,) = world.runners
    assert is_idle(left)


def test_one_with_a_job_works_on(world: World) -> None:
    world.make_set(maximum=1)
    runner = world.busy()
    pause(world, runner)
    (only,) = demand.look(world.refreshed()).useful
    assert (only.id, only.busy) == (runner.pk, True)
    world.scale(times=2)
    assert world.assigned.complete().conclusion == "success"

"""Runners of a set that ask for no job any more: are they lost, or was it the forge that was away?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from ci.lifecycle import demand, transitions
from ci.models import JobState
from ci.scaling.scaler import Scaler
from tests.playground import Assigned
from tests.scaling.test_scaler import PATIENCE_SECONDS, eventually
from tests.scaling.world import World


def asked_by(seconds: float) -> datetime:
    return timezone.now() + timedelta(seconds=seconds)


def test_before_the_grace_is_over_no_silence_is_held_against_anybody(world: World) -> None:
    world.make_set(minimum=2)
    world.scale()
    first, _ = world.runners
    world.poll(first)  # the other one did not come up yet: nobody could ask
    world.pass_time(301)
    losing_from = asked_by(170)
    scaled = transitions.scale_set(set_id=world.set.pk, losing_from=losing_from)
    assert [one.deleting_at for one in world.runners] == [None, None]
    assert scaled.stop == ()
    assert scaled.wake_at is not None
    assert scaled.wake_at <= losing_from
    world.pass_time(171)
    assert len(transitions.scale_set(set_id=world.set.pk, losing_from=asked_by(-1)).stop) == 2


@contextmanager
def leading(scaler: Scaler) -> Iterator[None]:
    thread = threading.Thread(target=lambda: (scaler.run(), connection.close()))
    thread.start()
    try:
        yield
    finally:
        scaler.stop()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_a_scaler_that_begins_to_lead_gives_everybody_the_time_to_ask(
    committing_world: World, settings: Settings
) -> None:
    """The forge was away for longer than any silence that is put up with, and so was perhaps the scaler."""
    settings.SCALE_SILENT_SECONDS = 3600
    world = committing_world
    world.make_set(minimum=3)
    world.scale()
    world.poll_all()
    world.pass_time(3700)
    samples = world.set.samples.count()
    world.edit(minimum=4)
    with leading(Scaler(launcher_of=world.launchers.__getitem__)):
        eventually(lambda: world.set.samples.count() > samples, "a look at the set")
    assert world.launcher.stops == []
    assert [one.deleting_at for one in world.runners] == [None] * 4


def test_silence_is_no_trouble_of_the_set(world: World) -> None:
    """Else a set would start one runner at a time after an outage of the web."""
    world.make_set(minimum=7)
    world.scale()
    world.poll_all()
    world.pass_time(181)
    runner_set = world.scale(times=3)
    assert len(world.ended) == 7
    assert runner_set.troubled_until is None
    assert len(world.launcher.running) == 7


def test_one_that_gets_a_job_just_then_keeps_it(
    world: World, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 15. Its claim comes after the look, and before its row is read: so its version has not changed since."""
    settings.SCALE_SILENT_SECONDS = 10  # when it was seen is noted no oftener than every 20 s
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    world.pass_time(15)
    world.queue(1)
    real, taken = demand.look, []

    def look(*args: Any) -> demand.Sight:
        sight = real(*args)
        taken.append(world.poll(runner))
        return sight

    monkeypatch.setattr(demand, "look", look)
    scaled = world.decide()
    monkeypatch.undo()
    (assigned,) = taken
    assert isinstance(assigned, Assigned)
    runner.refresh_from_db()
    assert (runner.deleting_at, scaled.stop) == (None, ())
    assert assigned.begin().job.state == JobState.RUNNING

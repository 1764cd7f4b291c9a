"""why: what a job waits for that a runner set may run, when the set has no runner for it yet."""

from __future__ import annotations

from typing import Any

import pytest

from ci.lifecycle import set_waiting
from ci.lifecycle.waiting import why
from ci.models import Job, Runner
from ci.scaling.launchers.protocol import PermanentLaunchError
from tests.scaling.world import World


@pytest.fixture
def led(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a scaler runs; the one of these tests leads nothing."""
    monkeypatch.setattr(set_waiting, "has_leader", lambda lock: True)


@pytest.mark.usefixtures("led")
def test_a_set_without_runners_is_no_missing_runner(world: World) -> None:
    world.make_set(maximum=2)
    first, _, third = world.queue(3)
    assert why(first) == "Runner set pool is about to start a runner."
    world.scale()
    world.poll(world.runners[0])
    assert why(third) == "Runner set pool has as many runners as it may (2): 1 at work, 1 starting."
    world.edit(maximum=3)
    assert why(third) == "Runner set pool is starting 1 runner."
    world.edit(maximum=2)
    world.poll_all()
    assert why(third) == "Runner set pool has as many runners as it may (2), and all are at work."


@pytest.mark.usefixtures("led")
def test_runners_that_only_end_are_told_of(world: World) -> None:
    world.make_set(maximum=1)
    _, second = world.queue(2)
    world.scale()
    world.poll_all()[0].begin().complete()
    assert why(second) == "Runner set pool has as many runners as it may (1): 1 ending."


def test_a_set_that_nobody_scales_is_told(world: World) -> None:
    world.make_set()
    (job,) = world.queue(1)
    world.scale()
    said = "Runner set pool starts no runners: no scaler is running. Start one with manage.py scale."
    assert why(job) == said


@pytest.mark.usefixtures("led")
def test_a_maximum_of_none_is_told(world: World) -> None:
    world.make_set(maximum=0)
    (job,) = world.queue(1)
    assert why(job) == "Runner set pool starts no runners: its maximum is 0."


@pytest.mark.usefixtures("led")
def test_a_paused_runner_of_a_set_is_none_that_starts(world: World) -> None:
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    world.edit(minimum=0)
    Runner.objects.update(paused=True)
    (job,) = world.queue(1)
    assert why(job) == "Runner set pool is about to start a runner."
    world.edit(maximum=1)
    assert why(job) == "Runner set pool has as many runners as it may (1): 1 paused."


@pytest.mark.usefixtures("led")
def test_that_something_keeps_the_set_from_it_is_told_and_what_only_to_its_administrators(world: World) -> None:
    world.make_set()
    (job,) = world.queue(1)
    world.launcher.refusals = [PermanentLaunchError("no such image")]
    world.scale(times=2)
    world.launcher.refusals = [PermanentLaunchError("no such image")] * 9
    world.scale(times=2)
    assert world.refreshed().trouble == "no such image"
    assert why(job) == "Runner set pool cannot start runners now. Its page says why, to those who administer it."


def test_a_parked_set_is_told(world: World) -> None:
    world.make_set()
    (job,) = world.queue(1)
    world.scale()
    world.exit(world.runners[0], 7)
    world.scale(times=2)
    assert why(job) == "Runner set pool starts no runners: those that it started were outdated."


def test_a_set_that_does_not_serve_it_is_not_mentioned(world: World) -> None:
    other = world.playground.make_repository(name="gadgets")
    world.make_set(repositories=[other])
    (job,) = world.queue(1)
    assert why(job) == "There is no runner for this repository: register one."


def test_a_free_runner_of_another_kind_is_told_of_as_before(world: World) -> None:
    world.make_set()
    (job,) = world.queue(1)
    runner = world.playground.runner()
    assert runner.is_online
    assert why(job) == "A fitting runner is free and should take it any moment."


def test_the_share_of_a_repository_is_told(world: World) -> None:
    world.make_set(maximum_per_repository=1, minimum=1)
    world.queue(2)
    world.scale()
    world.poll_all()
    waiting = Job.objects.get(state="queued")
    assert why(waiting) == "Runner set pool runs as many jobs of this repository as it may at once: 1."


def test_an_idle_runner_of_a_set_that_may_not_run_the_job_is_no_free_runner(world: World) -> None:
    other = world.playground.make_repository(name="other")
    world.make_set(minimum=1, repositories=[other])
    world.scale()
    world.poll_all()
    (job,) = world.queue(1)
    assert why(job) == "There is no runner for this repository: register one."


@pytest.mark.usefixtures("led")
def test_many_runners_are_asked_about_at_once(world: World, django_assert_max_num_queries: Any) -> None:
    world.make_set(maximum=12)
    world.queue(13)
    world.scale()
    assert len(world.poll_all()) == 12
    waiting = Job.objects.select_related("run__repository").get(state="queued")
    with django_assert_max_num_queries(8):
        assert why(waiting) == "Runner set pool has as many runners as it may (12), and all are at work."

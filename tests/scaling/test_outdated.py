"""A runner that says it is older than the oldest that the forge takes: it is told so, and its set is parked."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from ci.lifecycle.errors import RunnerOutdated
from ci.lifecycle.runner_versions import refuse_outdated
from ci.models import Runner, RunnerPhase, RunnerSet
from tests.api.calls import call
from tests.scaling.world import World


@pytest.fixture
def world(world: World, settings: Settings) -> World:
    """A set of one whose process was started."""
    settings.OLDEST_RUNNER = "1.2"
    world.make_set(minimum=1)
    world.scale()
    return world


def introduces_itself(world: World, version: str) -> int:
    """As the bundled runner begins; the status of the answer."""
    (runner,) = world.runners
    response = call("PATCH", "runners/self", token=world.token(runner), body={"version": version})
    if response.status_code == 409:
        assert response.json()["code"] == "runner_outdated"
    return int(response.status_code)


def test_it_is_told_and_its_set_is_parked(world: World) -> None:
    """Row 28. Its program ends with the exit code 7 then."""
    (runner,) = world.runners
    assert introduces_itself(world, "1.1.9") == 409
    runner.refresh_from_db()
    assert (runner.phase, runner.ready) == (RunnerPhase.OUTDATED, False)
    assert runner.reason == "Its version 1.1.9 is older than 1.2, the oldest one taken here."
    world.exit(runner, 7)
    world.queue(3)
    world.pass_time(600)
    runner_set = world.scale(times=3)
    assert (runner_set.phase, world.taking_room) == (RunnerSet.Phase.OUTDATED, 0)
    assert len(world.launcher.started) == 1


def test_one_whose_process_does_not_heed_it_is_ended(world: World) -> None:
    """Row 28."""
    (runner,) = world.runners
    assert introduces_itself(world, "1.1") == 409
    world.scale(times=2)
    assert world.launcher.running == []
    assert (runner.handle, False) in world.launcher.stops


@pytest.mark.parametrize("version", ["1.2", "1.2.0", "1.10", "2.0.0-rc1", "v1.3", "of another kind"])
def test_one_that_is_not_older_works(world: World, version: str) -> None:
    assert introduces_itself(world, version) == 200
    world.queue(1)
    assert len(world.poll_all()) == 1


def test_one_that_polls_on_after_the_setting_was_raised_is_told_as_well(world: World, settings: Settings) -> None:
    assert introduces_itself(world, "1.2") == 200
    world.poll_all()
    settings.OLDEST_RUNNER = "1.3"
    (runner,) = world.runners
    world.queue(1)
    response = call("POST", "jobs/fetch", token=world.token(runner), body={"poll_id": "one", "wait": 0})
    assert (response.status_code, response.json()["code"]) == (409, "runner_outdated")
    assert Runner.objects.get(pk=runner.pk).phase == RunnerPhase.OUTDATED


def test_one_with_a_job_ends_it_first(world: World, settings: Settings) -> None:
    assert introduces_itself(world, "1.2") == 200
    world.queue(1)
    (assigned,) = world.poll_all()
    settings.OLDEST_RUNNER = "1.3"
    refuse_outdated(Runner.objects.get(pk=assigned.runner.pk))
    assert assigned.begin().complete().conclusion == "success"


def test_only_runners_of_sets_are_refused(world: World) -> None:
    """The others were installed by people, who would find them dead."""
    runner = world.playground.runner()
    token = world.playground.runner_token
    response = call("PATCH", "runners/self", token=token, body={"version": "0.1"})
    assert response.status_code == 200
    runner.refresh_from_db()
    refuse_outdated(runner)


def test_without_the_setting_all_may_work(world: World, settings: Settings) -> None:
    settings.OLDEST_RUNNER = ""
    assert introduces_itself(world, "0.1") == 200


def test_it_is_told_again_as_often_as_it_asks(world: World) -> None:
    (runner,) = world.runners
    runner.agent_version = "1.0"
    for _ in range(2):
        with pytest.raises(RunnerOutdated, match=r"older than 1\.2"):
            refuse_outdated(runner)

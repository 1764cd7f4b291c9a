"""An outdated runner parks its set: no relaunch after another, until its program changes."""

from __future__ import annotations

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.errors import Conflict
from ci.models import Event, JobState, Runner, RunnerPhase, RunnerSet
from tests.scaling.world import World


def parked(world: World) -> RunnerSet:
    """A set of three, of which one ended as outdated."""
    world.make_set(minimum=3)
    world.scale()
    world.poll_all()
    world.exit(world.runners[0], 7, "this version of the runner is outdated (exit code 7)")
    return world.scale(times=2)


def test_one_outdated_runner_parks_the_set(world: World) -> None:
    """Row 28. (TestAutoscalingRunnerSetParksFirstRejection.)"""
    runner_set = parked(world)
    launches = len(world.launcher.started)
    assert (runner_set.phase, runner_set.desired) == (RunnerSet.Phase.OUTDATED, 0)
    assert runner_set.parked_at is not None
    assert world.phases() == ["outdated", "succeeded", "succeeded"]
    event = Event.objects.get(kind="runner_set_parked")
    assert event.detail.endswith("is outdated: this version of the runner is outdated (exit code 7)")
    world.queue(2)
    world.pass_time(600)
    world.scale(times=3)
    assert len(world.launcher.started) == launches
    assert world.launcher.running == []


def test_a_job_of_a_parked_set_goes_on(world: World) -> None:
    """Row 28."""
    world.make_set(minimum=1)
    busy = world.busy()
    world.scale()
    (idle,) = [runner for runner in world.runners if runner.pk != busy.pk]
    world.poll(idle)
    world.exit(idle, 7)
    world.scale(times=2)
    assert [runner.pk for runner in world.runners] == [busy.pk]
    world.assigned.complete()
    assert world.assigned.job.conclusion == "success"


def test_one_that_is_outdated_with_a_job_in_hand_parks_it_too(world: World) -> None:
    """Row 28. Its job is settled by the loss of its runner, as any other."""
    world.make_set()
    runner = world.busy()
    world.exit(runner, 7)
    assert world.scale(times=2).phase == RunnerSet.Phase.OUTDATED
    assert world.assigned.job.state == JobState.ENDED


@pytest.mark.parametrize("fields", [{"labels": ["linux", "big"]}, {"maximum": 9}, {"name": "other"}, {"minimum": 2}])
def test_only_another_program_lets_it_start_again(world: World, fields: dict[str, object]) -> None:
    """Row 29. (TestAutoscalingRunnerSetStaysOutdatedWithoutRunnerSpecChange.)"""
    parked(world)
    assert world.edit(**fields).phase == RunnerSet.Phase.OUTDATED
    assert world.scale(times=2).phase == RunnerSet.Phase.OUTDATED


def test_another_template_lets_it_start_again(world: World) -> None:
    """Row 29. (TestAutoscalingRunnerSetRecoversOnRunnerSpecChange.)"""
    revision = parked(world).spec_revision
    runner_set = world.edit(template={"work": "/srv/new"})
    assert (runner_set.phase, runner_set.parked_at, runner_set.spec_revision) == ("running", None, revision + 1)
    assert world.scale(times=2).desired == 3
    assert len(world.launcher.running) == 3


def test_a_person_may_let_it_start_again(world: World) -> None:
    """Row 29. The runner behind the same image's name may have been renewed."""
    runner_set = parked(world)
    operator = world.playground.operator
    with pytest.raises(Conflict):
        transitions.recover_set(set_id=runner_set.pk, actor=operator, version=runner_set.version - 1)
    transitions.recover_set(set_id=runner_set.pk, actor=operator, version=runner_set.version)
    assert world.scale(times=2).phase == RunnerSet.Phase.RUNNING
    assert len(world.launcher.running) == 3
    assert Event.objects.get(kind="runner_set_recovered").actor == operator
    with pytest.raises(Conflict, match="not parked"):
        transitions.recover_set(set_id=runner_set.pk, actor=operator)


def test_what_a_runner_of_an_older_revision_says_is_not_held_against_the_set(world: World) -> None:
    """Row 30. (TestUpdateStatusStaleOutdatedRunnersNeverSetTheOutdatedPhase.)"""
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (old,) = world.runners
    world.edit(template={"work": "/srv/new"})
    world.exit(old, 7)
    transitions.process_ended(runner_id=old.pk, attempt=1, exit_code=7)
    runner_set = world.scale(times=2)
    assert runner_set.phase == RunnerSet.Phase.RUNNING
    assert Runner.objects.get(pk=old.pk).phase == RunnerPhase.OUTDATED
    assert len(world.launcher.running) == 1

"""delete_set: intake ends, then the runners, then the set; whoever is killed on the way, it goes on."""

from __future__ import annotations

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.errors import Conflict, NotFound
from ci.models import Event, Job, JobState, Runner, RunnerSet
from tests.scaling.fake_launcher import Killed
from tests.scaling.world import World


def delete(world: World, **options: object) -> None:
    transitions.delete_set(set_id=world.set.pk, actor=world.playground.operator, **options)  # type: ignore[arg-type]


def test_idle_runners_go_and_then_the_set(world: World) -> None:
    """Row 33. (It should cleanup all resources for a deleting EphemeralRunnerSet before removing it.)"""
    world.make_set(minimum=2)
    world.scale()
    world.poll(world.runners[0])
    delete(world, version=world.refreshed().version)
    world.look()
    assert RunnerSet.objects.get().phase == RunnerSet.Phase.DELETING
    world.look(times=2)
    assert not RunnerSet.objects.exists()
    assert not Runner.objects.exists()
    assert world.launcher.running == []
    kinds = Event.objects.filter(kind__startswith="runner_set_de").order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["runner_set_deleting", "runner_set_deleted"]


def test_it_takes_no_job_any_more(world: World) -> None:
    """Row 33."""
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    delete(world)
    world.queue(1)
    assert world.poll_all() == []
    assert Job.objects.get().state == JobState.QUEUED


def test_busy_ones_end_their_jobs_first(world: World) -> None:
    """Row 33."""
    world.make_set()
    runner = world.busy()
    delete(world)
    world.look(times=3)
    assert RunnerSet.objects.get().phase == RunnerSet.Phase.DELETING
    world.assigned.complete()
    world.exit(runner, 0)
    world.look(times=2)
    assert not RunnerSet.objects.exists()
    assert (world.assigned.job.conclusion, world.assigned.job.runner_name) == ("success", runner.name)


def test_by_force_their_jobs_are_lost_at_once(world: World) -> None:
    """Row 33. Also where the deletion had begun without."""
    world.make_set()
    world.busy()
    delete(world)
    world.look()
    with pytest.raises(Conflict, match="already"):
        delete(world)
    delete(world, force=True)
    assert world.assigned.job.conclusion == "failure"
    assert world.assigned.job.end_note == "operator deleted its runner set."
    world.look(times=3)
    assert not RunnerSet.objects.exists()
    assert world.launcher.running == []


@pytest.mark.parametrize("steps", range(4))
def test_it_goes_on_after_the_scaler_was_killed(world: World, steps: int) -> None:
    """Row 33. Crash between steps, resume."""
    world.make_set(minimum=2)
    world.scale()
    delete(world)
    world.look(times=steps)
    world.scaler = world.another_scaler()
    world.look(times=4)
    assert not RunnerSet.objects.exists()
    assert world.launcher.running == []


def test_a_launch_on_its_way_is_waited_for(world: World) -> None:
    """TestSetCleanupWaitsForRunnerToRecordItsID, TestSetCleanupDeletesRunnerThatNeverRecordsItsID."""
    world.make_set(minimum=1)
    (runner_id,) = world.decide().launch
    begun = transitions.begin_launch(runner_id=runner_id)
    assert begun is not None
    delete(world)
    world.look(times=2)
    assert RunnerSet.objects.exists()
    world.pass_time(36)
    world.look(times=2)
    assert not RunnerSet.objects.exists()


def test_a_job_taken_before_the_handle_was_saved_is_waited_for(world: World) -> None:
    """TestSetCleanupHandlesJobReportedBeforeRunnerID."""
    world.make_set()
    world.queue(1)
    world.launcher.killed_after_start = True
    with pytest.raises(Killed):
        world.look()
    world.launcher.killed_after_start = False
    world.scaler = world.another_scaler()
    (runner,) = world.runners
    assert runner.handle == ""
    assigned = world.poll(runner)
    assert assigned is not None
    assigned.begin()
    delete(world)
    world.look(times=3)
    assert RunnerSet.objects.get().phase == RunnerSet.Phase.DELETING
    assert world.launcher.stops == []
    assigned.complete()
    assert assigned.job.conclusion == "success"
    world.exit(runner, 0)
    world.look(times=3)
    assert not RunnerSet.objects.exists()


def test_a_launch_on_its_way_that_comes_is_ended(world: World) -> None:
    world.make_set(minimum=1)
    (runner_id,) = world.decide().launch
    transitions.begin_launch(runner_id=runner_id)
    delete(world)
    world.look()
    assert transitions.launched(runner_id=runner_id, attempt=1, handle="late")
    world.look()
    assert ("late", False) in world.launcher.stops
    world.look()
    assert not RunnerSet.objects.exists()


def test_a_set_that_is_being_deleted_is_not_changed(world: World) -> None:
    world.make_set()
    delete(world)
    with pytest.raises(Conflict, match="being deleted"):
        world.edit(minimum=1)
    world.look()
    with pytest.raises(NotFound):
        delete(world)


def test_a_repository_takes_its_set_along_and_the_processes_are_ended(world: World) -> None:
    """Nothing of the set is left in the tables: its processes are nobody's, and found as such."""
    world.make_set(repository=world.playground.repository, minimum=1)
    world.scale()
    world.poll_all()
    world.playground.repository.delete()
    assert not RunnerSet.objects.exists()
    assert not Runner.objects.exists()
    world.look(times=2)
    assert world.launcher.running == []

"""Processes that must go: asked, then forced, by the handle of their very attempt; and their places are not held."""

from __future__ import annotations

import re
from dataclasses import replace

from ci.lifecycle import registration, transitions
from ci.lifecycle.demand import look
from ci.lifecycle.set_counts import counted
from ci.lifecycle.set_waiting import counts
from ci.models import Event, Runner, RunnerPhase, RunnerSet
from tests.scaling.world import World


def retired(world: World) -> Runner:
    """An idle runner beyond need, told to go."""
    world.make_set(minimum=1, maximum=1)
    world.scale()
    world.poll_all()
    world.pass_time(61)
    world.edit(minimum=0)
    world.scale(times=2)  # the first look retires it, and so wakes the second
    (runner,) = world.ended
    return runner


def test_it_is_asked_once_and_then_gone(world: World) -> None:
    """It should clean up resources when deleted."""
    runner = retired(world)
    assert world.launcher.stops == [(runner.handle, False)]
    world.scale(times=2)
    runner.refresh_from_db()
    assert runner.stopped_at is not None
    assert world.launcher.stops == [(runner.handle, False)]
    assert world.attempts(runner)[0].failed is False


def test_one_that_does_not_go_is_forced_and_that_is_noted(world: World) -> None:
    """Row 34."""
    world.launcher.stubborn = True
    runner = retired(world)
    world.scale(times=3)
    assert world.launcher.stops == [(runner.handle, False)]
    assert world.taking_room == 1
    world.pass_time(31)
    world.scale(times=2)
    assert world.launcher.stops == [(runner.handle, False), (runner.handle, True)]
    assert world.taking_room == 0
    event = Event.objects.get(runner=runner, kind="runner_forced")
    assert re.match(r"Its process was still there 3\d s after it was told to go", event.detail)


def test_one_that_cannot_be_forced_is_given_up_in_the_end(world: World) -> None:
    """Row 34. (The clean-up of upstream waits for ever.)"""
    world.launcher.immortal = True
    runner = retired(world)
    for _ in range(4):
        world.pass_time(31)
        world.scale(times=2)
    assert world.launcher.stops == [(runner.handle, False), *[(runner.handle, True)] * 4]
    assert world.taking_room == 1
    world.pass_time(600)
    world.scale(times=2)
    assert world.taking_room == 0
    assert Event.objects.filter(runner=runner, kind="runner_given_up").count() == 1
    # Should the engine remember it after all, it is nobody's, and ended as such.
    world.launcher.immortal = False
    world.scale(times=3)
    assert world.launcher.running == []
    assert Event.objects.filter(kind="orphan_ended").count() == 1


def silent_and_immortal(world: World, **fields: int) -> Runner:
    """An idle runner that asks for no job any more, and was told to go; nobody can say whether it ever will."""
    world.make_set(minimum=1, **fields)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    world.launcher.immortal = True
    world.pass_time(181)
    world.scale()
    runner.refresh_from_db()
    assert (runner.phase, runner.deleting_at is not None) == (RunnerPhase.PENDING, True)
    return runner


def test_one_without_a_job_that_cannot_be_ended_is_given_up_too(world: World) -> None:
    """Row 34."""
    runner = silent_and_immortal(world, maximum=1)
    for _ in range(3):
        world.pass_time(31)
        world.scale(times=2)
    assert world.taking_room == 1
    wake_at = world.refreshed().wake_at
    assert wake_at is not None
    world.pass_time(600)
    world.scale(times=2)
    runner.refresh_from_db()
    assert (runner.phase, runner.stopped_at is not None) == (RunnerPhase.FAILED, True)
    silence = "It has not asked for a job for 180 s."
    assert runner.reason == f"{silence} Its process was not known to be gone 600 s after it was told to go."
    assert [(one.reason, one.ended_at is not None) for one in world.attempts(runner)] == [(silence, True)]
    assert Event.objects.filter(runner=runner, kind="runner_given_up").count() == 1
    (other,) = world.runners
    assert other.handle in world.launcher.running


def test_one_that_was_told_to_go_is_no_runner_that_a_job_can_count_on(world: World) -> None:
    """Else its job would wait as long as its process is there."""
    runner = silent_and_immortal(world, maximum=2)
    world.scale()
    (other,) = [one for one in world.runners if one.pk != runner.pk]
    assert other.handle in world.launcher.running
    sight = look(world.refreshed())
    assert [one.id for one in sight.useful] == [other.pk]
    has = counts(sight)
    assert (has.starting, has.idle, has.ending) == (1, 0, 1)
    row = counted(RunnerSet.objects.all()).get()
    assert (row.starting, row.idle, row.leaving) == (1, 0, 1)
    world.scale(times=2)
    assert world.taking_room == 2


def test_one_that_was_told_to_go_does_not_keep_its_set_from_being_deleted(world: World) -> None:
    """Row 33."""
    silent_and_immortal(world)
    transitions.delete_set(set_id=world.set.pk, actor=world.playground.operator)
    world.look(times=2)
    world.pass_time(601)
    world.look(times=2)
    assert not RunnerSet.objects.exists()


def test_a_busy_runner_whose_process_and_engine_are_dead_is_gone_in_time(world: World) -> None:
    """Row 34. busy + dead process -> gone after N min."""
    world.make_set(maximum=1)
    world.busy()
    world.launcher.away = True
    world.pass_time(61)
    assert transitions.lose_job(job_id=world.assigned.id) == "lost"
    for seconds in (0, 31, 31, 600):
        world.pass_time(seconds)
        world.scale(times=2)
    assert world.taking_room == 0


def test_a_stop_that_fails_is_tried_again(world: World) -> None:
    """TestRunnerUnregistrationQueueRetriesWhileTheJobIsStillRunning: none has a job, it was retired first."""
    world.launcher.away = True
    world.make_set(minimum=1)
    world.launcher.away = False
    world.scale()
    world.poll_all()
    world.pass_time(61)
    world.edit(minimum=0)
    world.launcher.away = True
    world.scale(times=2)
    assert world.launcher.stops == []
    world.launcher.away = False
    world.scale(times=2)
    assert world.taking_room == 0


def test_a_process_that_lives_on_after_its_job_is_ended_after_a_grace(world: World) -> None:
    """Row 37. (HandleJobCompleted cleans nothing up.)"""
    world.make_set()
    runner = world.busy()
    world.assigned.complete()
    world.scale(times=2)
    assert world.launcher.stops == []
    assert world.refreshed().wake_at is not None
    world.pass_time(31)
    world.scale()
    assert world.launcher.stops == [(runner.handle, False)]
    world.scale()
    assert world.taking_room == 0
    runner.refresh_from_db()
    assert runner.phase == RunnerPhase.SUCCEEDED


def test_a_lost_one_has_no_grace(world: World) -> None:
    """Row 37. Its job is somebody else's now."""
    world.make_set()
    world.queue(1)
    world.scale()
    (assigned,) = world.poll_all()
    assigned.heartbeat()
    world.pass_time(61)
    assert transitions.lose_job(job_id=assigned.id) == "lost"
    world.scale()
    assert (world.handle(assigned.runner), False) in world.launcher.stops


def test_a_cancelled_job_that_is_ended_by_force_takes_its_process_along(world: World) -> None:
    """Row 38."""
    world.make_set()
    runner = world.busy()
    transitions.cancel_job(job_id=world.assigned.id, actor=world.playground.alice, force=True)
    world.scale()
    world.pass_time(31)
    world.scale()
    assert world.launcher.stops == [(runner.handle, False)]


def test_a_stop_that_comes_late_ends_no_later_process_of_its_runner(world: World) -> None:
    """Row 36. (TestDeletePodOptionsDeletesOnlyThePodItLookedAt.) It was decided on, and waited for its turn."""
    world.make_set(minimum=1, maximum=1)
    world.scale()
    (runner,) = world.runners
    world.pass_time(301)
    (late,) = world.decide().stop
    assert late.handle == runner.handle
    world.exit(runner, 1)
    world.scale()
    world.pass_time(6)
    world.scale()
    assert [one.number for one in world.attempts(runner)] == [1, 2]
    world.launcher.stops.clear()
    for force in (False, True):
        world.scaler._stop(world.set.pk, replace(late, force=force))
    assert {handle for handle, _ in world.launcher.stops} <= {late.handle}
    assert world.launcher.running == [world.handle(runner)]
    assert not Event.objects.filter(kind="runner_forced").exists()


def test_one_that_was_told_to_go_is_not_told_again(world: World) -> None:
    """TestScaleDownDoesNotRemoveADeletingRunnerAgain: nor is the force put off that it is about to meet."""
    world.launcher.stubborn = True
    world.make_set(minimum=1)
    world.scale()
    world.pass_time(301)
    world.scale()
    (runner,) = world.runners
    told = (runner.deleting_at, runner.cleanup_at)
    assert None not in told
    world.edit(minimum=0)
    world.scale(times=2)
    assert Event.objects.filter(kind="runner_retired").count() == 0
    world.edit(template={"work": "/srv/new"})
    world.scale(times=2)
    runner.refresh_from_db()
    assert (runner.deleting_at, runner.cleanup_at) == told
    assert transitions.retire_runner(runner_id=runner.pk, reason="somebody said so")
    runner.refresh_from_db()
    assert (runner.deleting_at, runner.cleanup_at) == told
    world.scale(times=2)
    assert world.launcher.stops == [(runner.handle, False)]


def test_a_sets_runner_that_takes_itself_away_has_its_process_end_by_itself(world: World) -> None:
    """TestRunnerSelfDeregistered, TestRunnerUnregistrationQueueRemovesRunner: there is no other service to tell."""
    world.make_set(minimum=1, maximum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    registration.remove_runner(runner_id=runner.pk)
    world.exit(runner, 0)
    world.scale(times=2)
    runner.refresh_from_db()
    assert (runner.phase, runner.exit_code, runner.stopped_at is not None) == (RunnerPhase.SUCCEEDED, 0, True)
    assert world.launcher.stops == []
    (other,) = world.runners
    assert other.handle in world.launcher.running


def test_a_runner_that_is_removed_takes_up_room_until_its_process_is_gone(world: World) -> None:
    world.make_set(minimum=1, maximum=1)
    world.launcher.stubborn = True
    runner = world.busy()
    registration.remove_runner(runner_id=runner.pk, actor=world.playground.operator)
    assert world.assigned.job.conclusion == "failure"
    world.scale(times=2)
    assert (world.taking_room, len(world.launcher.running)) == (1, 1)
    world.pass_time(31)
    world.scale(times=3)
    assert runner.handle not in world.launcher.running
    assert len(world.launcher.running) == 1


def test_rows_of_the_gone_are_forgotten_after_a_day(world: World) -> None:
    """Should clean up finished ephemeral runner when scaling down; should keep finished ephemeral runners until patch
    id changes: a day stands in for the patch id."""
    runner = retired(world)
    world.scale(times=2)
    world.pass_time(86_000)
    world.scale()
    assert Runner.objects.filter(pk=runner.pk).exists()
    world.pass_time(500)
    world.scale()
    assert not Runner.objects.filter(pk=runner.pk).exists()

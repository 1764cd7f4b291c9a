"""The scaler is killed between any two writes: whoever comes next finds what is there, and nothing is done twice."""

from __future__ import annotations

import pytest

from ci.lifecycle import transitions
from ci.lifecycle.errors import Unauthenticated
from ci.lifecycle.tokens import runner_of
from ci.models import Event, LaunchAttempt, Runner, RunnerSet
from tests.scaling.fake_launcher import Killed
from tests.scaling.world import World, is_idle


def killed(world: World) -> None:
    """The scaler looks, and does not survive it; another one comes."""
    world.scaler.wake_all()
    with pytest.raises(Killed):
        world.scaler.step()
    world.launcher.killed_before_start = world.launcher.killed_after_start = False
    world.launcher.killed_at = ""
    world.scaler = world.another_scaler()


def test_after_the_row_and_before_the_attempt(world: World) -> None:
    """Row 41 (case 7 of those that upstream lacks)."""
    world.make_set(minimum=2)
    world.decide()
    world.scaler = world.another_scaler()
    world.scale()
    assert len(world.launcher.running) == Runner.objects.count() == LaunchAttempt.objects.count() == 2


def test_after_the_attempt_and_before_the_start(world: World) -> None:
    """Row 41. Its credential is lost with the killed one: another attempt, once the call must have ended."""
    world.make_set(minimum=1, maximum=1)
    world.launcher.killed_before_start = True
    killed(world)
    world.scale(times=3)
    assert (world.launcher.started, world.taking_room) == ({}, 1)
    world.pass_time(36)
    world.scale(times=2)
    (runner,) = world.runners
    assert [(one.number, one.failed) for one in world.attempts(runner)] == [(1, False), (2, False)]
    assert world.attempts(runner)[0].reason == "Its launch was broken off before its process was there."
    assert world.launcher.running == [runner.handle]


def test_after_the_start_and_before_its_handle_is_saved(world: World) -> None:
    """Rows 41 and 50: it is found by its identity, and adopted."""
    world.make_set(minimum=1)
    world.launcher.killed_after_start = True
    killed(world)
    (handle,) = world.launcher.running
    assert Runner.objects.get().handle == ""
    world.scale(times=2)
    (runner,) = world.runners
    assert runner.handle == handle
    assert len(world.launcher.started) == LaunchAttempt.objects.count() == 1
    world.queue(1)
    (assigned,) = world.poll_all()
    assigned.begin().complete()
    assert assigned.job.conclusion == "success"


def test_after_the_start_of_one_that_is_not_wanted_any_more(world: World) -> None:
    """Row 41. It is told to go as soon as it is found."""
    world.make_set(minimum=1)
    world.launcher.killed_after_start = True
    killed(world)
    transitions.delete_set(set_id=world.set.pk, actor=world.playground.operator)
    world.look(times=4)
    assert world.launcher.running == []
    assert not Runner.objects.exists()


def test_after_an_end_and_before_it_is_noted(world: World) -> None:
    """Row 41."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    world.exit(runner, 1)
    world.scaler = world.another_scaler()
    world.scale()
    assert world.attempts(runner)[0].exit_code == 1


def test_after_a_retirement_and_before_the_stop(world: World) -> None:
    """Row 41."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    transitions.retire_runner(runner_id=runner.pk, reason="idle")
    world.scaler = world.another_scaler()
    world.edit(minimum=0)
    world.scale(times=2)
    assert world.launcher.running == []
    assert world.taking_room == 0


def test_after_the_stop_was_asked_for_and_before_the_end(world: World) -> None:
    """Row 41. Asked again by the next one: an idle runner has nothing that a second request could break off."""
    world.launcher.stubborn = True
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    transitions.retire_runner(runner_id=runner.pk, reason="idle")
    world.edit(minimum=0)
    world.scale()
    world.scaler = world.another_scaler()
    world.launcher.stubborn = False
    world.scale(times=2)
    assert world.launcher.stops == [(runner.handle, False)] * 2
    assert world.taking_room == 0


@pytest.mark.parametrize("call", ["stop", "stopped", "list", "poll"])
def test_within_a_call_of_the_launcher(world: World, call: str) -> None:
    """Row 41. Before the engine hears of it, and before anybody hears the engine's answer."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    transitions.retire_runner(runner_id=runner.pk, reason="idle")
    world.edit(minimum=0)
    if call == "poll":
        world.launcher.lose(runner.handle)
    world.launcher.killed_at = call
    killed(world)
    assert world.taking_room == 1
    world.scale(times=2)
    assert (world.launcher.running, world.taking_room) == ([], 0)
    assert [(one.number, one.failed) for one in world.attempts(runner)] == [(1, False)]


def test_after_an_orphan_was_met_and_before_its_end(world: World) -> None:
    """Rows 41 and 50."""
    world.make_set(minimum=1)
    world.scale()
    LaunchAttempt.objects.all().delete()
    Runner.objects.all().delete()
    RunnerSet.objects.all().delete()
    world.look()
    world.clock += 2
    world.launcher.killed_at = "stop"
    killed(world)
    assert Event.objects.filter(kind="orphan_ended").count() == 1
    assert len(world.launcher.running) == 1
    world.look(times=2)
    assert world.launcher.running == []


def test_a_process_of_a_launch_that_was_given_up_is_ended(world: World) -> None:
    """Row 50. It came after all, with a credential that is worth nothing any more."""
    world.make_set(minimum=1)
    (runner_id,) = world.decide().launch
    begun = transitions.begin_launch(runner_id=runner_id)
    assert begun is not None
    world.pass_time(36)
    world.scale(times=2)
    (fresh,) = world.launcher.running
    late = world.launcher.started[fresh].launch
    stray = world.launcher.start(
        type(late)(**{**vars(late), "identity": f"forge-{begun.set_id}-{runner_id}-1", "attempt": 1})
    )
    with pytest.raises(Unauthenticated):
        runner_of(begun.token)
    world.scale()
    assert (stray, False) not in world.launcher.stops  # it may be ending anyhow
    world.scale(times=2)
    assert world.launcher.stops == [(stray, False)]
    assert world.launcher.running == [fresh]
    assert Event.objects.filter(kind="orphan_ended").count() == 1
    world.poll_all()
    assert is_idle(world.runners[0])


def test_a_process_of_a_set_that_is_gone_is_ended(world: World) -> None:
    """Row 50."""
    world.make_set(minimum=1)
    world.scale()
    (handle,) = world.launcher.running
    LaunchAttempt.objects.all().delete()
    Runner.objects.all().delete()
    RunnerSet.objects.all().delete()
    world.launcher.stubborn = True
    world.make_set(name="another")
    world.look(times=2)
    assert world.launcher.stops == [(handle, False)]
    world.pass_time(61)  # they are looked for once a minute
    world.look()
    assert world.launcher.stops == [(handle, False), (handle, True)]
    assert world.launcher.running == []

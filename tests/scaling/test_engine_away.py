"""The engine is away when a runner shall start: whether there is a process cannot be told, but people are told why."""

from __future__ import annotations

import pytest
from django.utils import timezone

from ci.lifecycle import demand, set_waiting
from ci.lifecycle.errors import Unauthenticated
from ci.lifecycle.tokens import runner_of
from ci.lifecycle.waiting import why
from ci.models import Job, LaunchAttempt, Runner, RunnerPhase
from ci.scaling.launchers.protocol import Launch, Process, TransientLaunchError
from tests.scaling.fake_launcher import Killed
from tests.scaling.world import World, is_idle

REFUSED = "the container engine cannot be reached: Connection refused"


@pytest.fixture(autouse=True)
def led(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a scaler runs; the one of these tests leads nothing."""
    monkeypatch.setattr(set_waiting, "has_leader", lambda lock: True)


def goes_away(world: World) -> None:
    world.launcher.away = True
    world.launcher.refusals = [TransientLaunchError(REFUSED) for _ in range(50)]


def comes_back(world: World) -> None:
    world.launcher.away = False
    world.launcher.refusals = []


def asked_in_vain(world: World) -> tuple[Job, Runner]:
    """A job that waits for a runner of a set whose engine is away."""
    world.make_set(maximum=1)
    (job,) = world.queue(1)
    goes_away(world)
    world.scale(times=2)
    (runner,) = world.runners
    return job, runner


def on_the_page(world: World) -> str:
    runner_set = world.refreshed()
    return set_waiting.for_owner(runner_set, set_waiting.counts(demand.look(runner_set)))


def test_the_set_and_the_job_say_why(world: World) -> None:
    job, _ = asked_in_vain(world)
    assert world.refreshed().trouble == REFUSED
    assert on_the_page(world) == f"1 runner cannot be started now: {REFUSED}"
    assert why(job) == "Runner set pool cannot start runners now. Its page says why, to those who administer it."


def test_an_attempt_that_may_have_a_process_is_not_begun_again(world: World) -> None:
    """Row 8. Its call may have been heard before the engine went away."""
    _, runner = asked_in_vain(world)
    world.pass_time(200)
    world.scale(times=3)
    assert [(one.number, one.ended_at, one.reason) for one in world.attempts(runner)] == [(1, None, REFUSED)]


def test_once_the_engine_is_back_it_is_started(world: World) -> None:
    job, runner = asked_in_vain(world)
    world.pass_time(200)
    comes_back(world)
    world.scale(times=3)
    assert [(one.number, one.failed) for one in world.attempts(runner)] == [(1, False), (2, False)]
    (assigned,) = world.poll_all()
    assert assigned.id == job.pk
    assert world.scale(times=2).trouble == ""


def test_it_is_not_said_to_have_waited_for_room(world: World) -> None:
    """However long the engine was away: that is no quota."""
    _, runner = asked_in_vain(world)
    world.pass_time(650)
    comes_back(world)
    world.scale(times=3)
    runner.refresh_from_db()
    assert (runner.phase, runner.handle in world.launcher.running) == (RunnerPhase.PENDING, True)


def test_a_process_that_was_started_after_all_is_adopted(world: World) -> None:
    """Row 50. And what was noted of its launch is not its end's reason."""
    world.make_set(minimum=1)
    real = world.launcher.start

    def started_without_answer(launch: Launch) -> str:
        real(launch)
        world.launcher.away = True
        raise TransientLaunchError(REFUSED)

    world.launcher.start = started_without_answer  # type: ignore[method-assign]
    assert world.scale(times=2).trouble == REFUSED
    comes_back(world)
    runner_set = world.scale(times=2)
    (runner,) = world.runners
    assert (runner.handle, runner_set.trouble) == (world.launcher.running[0], "")
    assert world.attempts(runner)[0].reason == ""
    world.poll(runner)
    assert is_idle(world.runners[0])


def test_the_boot_deadline_holds_without_an_answer_too(world: World) -> None:
    """Row 23. Its credential is taken back: should its process come up after all, it gets no job."""
    _, runner = asked_in_vain(world)
    wake_at = world.refreshed().wake_at
    assert wake_at is not None
    assert 0 < (wake_at - timezone.now()).total_seconds() <= 300
    world.pass_time(301)
    world.scale()
    runner.refresh_from_db()
    assert (runner.token_hash, runner.deleting_at is not None, runner.reason) == (None, True, REFUSED)
    assert world.refreshed().trouble == REFUSED
    comes_back(world)
    world.scale(times=3)
    assert [one.number for one in world.attempts(runner)] == [1, 2]
    assert len(world.launcher.running) == 1


def test_one_of_a_killed_scaler_has_that_deadline_as_well(world: World) -> None:
    """Row 41. Nobody noted why."""
    world.make_set(minimum=1)
    world.launcher.killed_after_start = True
    with pytest.raises(Killed):
        world.scale()
    world.launcher.killed_after_start = False
    (token,) = [one.launch.token for one in world.launcher.started.values()]
    world.launcher.away = True
    world.pass_time(301)
    world.scale()
    (runner,) = world.runners
    assert runner.reason == "It did not come up within 300 s."
    with pytest.raises(Unauthenticated):
        runner_of(token)
    assert LaunchAttempt.objects.filter(ended_at=None).count() == 1


def test_an_engine_that_stays_away_holds_no_place_for_ever(world: World) -> None:
    """Row 34. Another runner asks it anew, with a credential of its own."""
    _, runner = asked_in_vain(world)
    world.pass_time(301)
    world.scale()
    assert world.taking_room == 1
    world.pass_time(601)
    world.scale(times=3)
    runner.refresh_from_db()
    assert runner.phase == RunnerPhase.FAILED
    assert runner.reason.startswith(REFUSED)
    (other,) = world.runners
    assert (other.pk != runner.pk, other.attempts, world.taking_room) == (True, 1, 1)
    assert world.refreshed().trouble == REFUSED


def test_waiting_for_room_begins_with_the_first_refusal(world: World) -> None:
    """Row 22. Not with the runner: it may have been idle for days."""
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    for _ in range(10):
        world.pass_time(100)
        world.poll_all()
        world.scale()
    world.exit(runner, 1)
    world.scale()
    world.launcher.refusals = [TransientLaunchError("quota exceeded", retry_after=30) for _ in range(30)]
    world.pass_time(6)
    world.scale()
    assert [one.pk for one in world.runners] == [runner.pk]
    world.pass_time(601)
    world.scale()
    runner.refresh_from_db()
    assert (runner.phase, runner.reason) == (RunnerPhase.FAILED, "It waited 10 min for room: quota exceeded")


def test_a_launcher_that_can_say_nothing_of_a_process_does_not_take_its_job_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 27. It is not in the list, but on the machine of the scaler that led before."""
    world.make_set()
    runner = world.busy()

    def elsewhere(handle: str) -> Process | None:
        raise TransientLaunchError("its process is on another machine")

    monkeypatch.setattr(world.launcher, "list", lambda set_id=None: [])
    monkeypatch.setattr(world.launcher, "poll", elsewhere)
    world.scale(times=3)
    runner.refresh_from_db()
    assert runner.phase == RunnerPhase.RUNNING
    assert world.assigned.complete().conclusion == "success"

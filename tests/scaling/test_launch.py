"""begin_launch, launched, launch_failed: a runner gets one process at a time, each with a credential of its own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from ci.lifecycle import transitions
from ci.lifecycle.errors import NotFound, Unauthenticated
from ci.lifecycle.tokens import runner_of
from ci.models import Event, LaunchAttempt, Runner, RunnerPhase
from ci.scaling.launchers.protocol import PermanentLaunchError, TransientLaunchError
from ci.scaling.starting import start
from tests.scaling.world import World, is_idle


def test_it_is_told_what_to_start(world: World) -> None:
    """It should create/add all required resources for EphemeralRunner: a credential, and no finalizer."""
    world.make_set(labels=["Linux", "x64"], minimum=1, template={"work": "/srv/fast"})
    world.scale()
    (runner,) = world.runners
    (started,) = world.launcher.started.values()
    launch = started.launch
    assert launch.identity == f"forge-{world.set.pk}-{runner.pk}-1"
    assert (launch.set_id, launch.runner_id, launch.attempt) == (world.set.pk, runner.pk, 1)
    assert (launch.name, launch.labels, launch.template) == (runner.name, ("linux", "x64"), {"work": "/srv/fast"})
    assert launch.url.startswith("http")
    assert runner_of(launch.token).pk == runner.pk
    assert launch.token not in repr(launch) + repr(list(Event.objects.values())) + repr(list(Runner.objects.values()))


def test_up_is_apart_from_busy(world: World) -> None:
    """Row 6. (Eventually have runner id set; not update phase if container state does not exist; patch the ephemeral
    runner non terminating status; update ready based on the latest condition.)"""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    assert (runner.phase, runner.ready, runner.registered_at) == (RunnerPhase.PENDING, False, None)
    assert runner.launched_at is not None
    world.poll(runner)
    (runner,) = world.runners
    assert (runner.phase, runner.ready) == (RunnerPhase.PENDING, True)
    assert runner.registered_at == runner.idle_since is not None
    world.queue(1)
    assigned = world.poll(runner)
    assert assigned is not None
    assigned.heartbeat()
    runner.refresh_from_db()
    assert (runner.phase, runner.ready, runner.idle_since) == (RunnerPhase.RUNNING, True, None)


def test_a_begun_attempt_is_not_begun_again(world: World) -> None:
    """Row 11. A start happens at most once for each attempt."""
    world.make_set(minimum=1)
    (runner_id,) = world.decide().launch
    begun = transitions.begin_launch(runner_id=runner_id)
    assert begun is not None
    assert transitions.begin_launch(runner_id=runner_id) is None
    assert world.decide().launch == ()
    assert LaunchAttempt.objects.count() == 1
    with pytest.raises(NotFound):
        transitions.begin_launch(runner_id=4711)


def test_the_handle_is_kept_once_and_by_its_own_attempt(world: World) -> None:
    """Row 36."""
    world.make_set(minimum=1)
    (runner_id,) = world.decide().launch
    transitions.begin_launch(runner_id=runner_id)
    assert not transitions.launched(runner_id=runner_id, attempt=2, handle="of a later one")
    assert transitions.launched(runner_id=runner_id, attempt=1, handle="h1")
    before = Runner.objects.filter(pk=runner_id).values().get()
    assert transitions.launched(runner_id=runner_id, attempt=1, handle="h1")
    assert Runner.objects.filter(pk=runner_id).values().get() == before
    transitions.process_ended(runner_id=runner_id, attempt=1, exit_code=1)
    assert not transitions.launched(runner_id=runner_id, attempt=1, handle="h1")
    assert Runner.objects.get(pk=runner_id).handle == ""


def test_failures_wait_longer_and_longer(world: World) -> None:
    """Row 19. The first attempt waits for nothing."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    for failure, seconds in enumerate([5, 10, 20, 40, 80], 1):
        world.exit(runner, 1, "no route to host")
        world.scale()
        (runner,) = world.runners
        assert runner.next_attempt_at is not None
        planned = runner.next_attempt_at - world.attempts(runner)[-1].ended_at
        assert seconds <= planned.total_seconds() < seconds + 4
        assert (runner.failures, runner.attempts, runner.reason) == (failure, failure, "no route to host")
        world.scale()
        assert len(world.launcher.running) == 0
        world.pass_time(seconds + 4)
        world.scale()
        assert len(world.launcher.running) == 1
    reasons = [(one.exit_code, one.reason, one.failed) for one in world.attempts(runner)]
    assert reasons == [(1, "no route to host", True)] * 5 + [(None, "", False)]


def test_after_too_many_failures_another_runner_takes_its_place(world: World) -> None:
    """Row 20. (Eventually delete ephemeral runner after consecutive failures; mark as failed when job is not assigned
    and pod is failed.)"""
    world.make_set(minimum=1, maximum=1)
    world.scale()
    (first,) = world.runners
    for _ in range(6):
        world.exit(first, 3, "no disk")
        world.scale()
        world.pass_time(81)
        world.scale()
    (other,) = world.runners
    (failed,) = world.ended
    assert failed.pk == first.pk != other.pk
    assert (failed.phase, failed.reason) == (RunnerPhase.FAILED, "Too many failures (6); the last: no disk")
    assert world.taking_room == 1


def test_a_set_whose_launches_keep_failing_slows_down_and_keeps_its_capacity(world: World) -> None:
    """Row 20."""
    world.make_set(minimum=4)
    world.launcher.refusals = [PermanentLaunchError("no such image") for _ in range(6)]
    runner_set = world.scale(times=4)
    assert runner_set.troubled_until is not None
    assert runner_set.trouble == "no such image"
    assert Event.objects.filter(kind="runner_set_troubled").count() == 1
    assert len(world.runners) == runner_set.desired == 4
    assert (world.launcher.refusals, world.launcher.running) == ([], [])
    world.pass_time(81)
    world.scale(times=3)
    assert len(world.launcher.running) == 1  # one at a time: the others wait until it has come up
    world.poll_all()
    world.scale(times=2)
    assert len(world.launcher.running) == 2
    world.poll_all()
    world.pass_time(520)
    Runner.objects.update(last_seen_at=timezone.now())
    runner_set = world.scale(times=2)
    assert (runner_set.troubled_until, len(world.launcher.running)) == (None, 4)


def test_launches_that_were_decided_on_before_the_trouble_are_held_back_too(world: World) -> None:
    """Row 20. They waited for a thread while the others failed."""
    world.make_set(minimum=10)
    decided = world.decide().launch
    world.launcher.refusals = [PermanentLaunchError("no such image") for _ in range(6)]
    for runner_id in decided:
        start(runner_id, launcher_of=world.launchers.__getitem__)
    assert (LaunchAttempt.objects.count(), world.launcher.running) == (6, [])
    world.pass_time(81)
    assert transitions.begin_launch(runner_id=decided[6]) is not None
    assert transitions.begin_launch(runner_id=decided[7]) is None  # until the other one has come up
    assert world.decide().launch == ()


def test_a_job_taken_ends_the_trouble(world: World) -> None:
    world.make_set(minimum=1)
    world.launcher.refusals = [PermanentLaunchError("no such image") for _ in range(6)]
    assert world.scale(times=7).troubled_until is not None
    world.pass_time(81)
    world.scale()
    world.queue(1)
    (assigned,) = world.poll_all()
    assigned.begin()
    runner_set = world.scale()
    assert (runner_set.troubled_until, runner_set.trouble) == (None, "")
    assert Event.objects.filter(kind="runner_set_untroubled").count() == 1


def test_what_can_never_be_started_is_not_tried_again(world: World) -> None:
    """Row 21. (Failed if a pod template is invalid.)"""
    world.make_set(minimum=1)
    world.launcher.refusals = [PermanentLaunchError("no such image: forge/runner:nope")]
    world.scale()
    (failed,) = world.ended
    assert failed.phase == RunnerPhase.FAILED
    assert failed.reason == "It cannot be started: no such image: forge/runner:nope"
    assert (failed.attempts, failed.next_attempt_at) == (1, None)
    assert failed.stopped_at is not None


def test_no_room_is_no_failure_and_is_asked_for_again(world: World) -> None:
    """Row 22. (Quota exceeded.)"""
    world.make_set(minimum=1)
    world.launcher.refusals = [TransientLaunchError("quota exceeded: pods=10", retry_after=30)]
    runner_set = world.scale(times=2)
    (runner,) = world.runners
    assert runner.next_attempt_at is not None
    assert runner.next_attempt_at - world.attempts(runner)[0].ended_at >= timedelta(seconds=30)
    assert (runner.failures, runner.reason) == (0, "quota exceeded: pods=10")
    assert runner_set.trouble == "quota exceeded: pods=10"
    world.pass_time(31)
    world.scale()
    assert len(world.launcher.running) == 1


def test_who_waited_for_room_too_long_is_made_anew(world: World) -> None:
    """Row 22."""
    world.make_set(minimum=1)
    world.launcher.refusals = [TransientLaunchError("quota exceeded", retry_after=30) for _ in range(2)]
    world.scale()
    (first,) = world.runners
    world.pass_time(601)
    world.scale(times=2)
    (other,) = world.runners
    assert other.pk != first.pk
    first.refresh_from_db()
    assert first.phase == RunnerPhase.FAILED
    assert first.reason == "It waited 10 min for room: quota exceeded"


def test_a_launch_without_an_answer_is_looked_for_before_another_one(world: World) -> None:
    """Rows 8 and 50. The call timed out, but the engine had started it."""
    world.make_set(minimum=1)
    real = world.launcher.start

    def started_without_answer(launch):  # type: ignore[no-untyped-def]
        real(launch)
        raise TransientLaunchError("no answer within 30 s")

    world.launcher.start = started_without_answer  # type: ignore[method-assign]
    world.scale()
    world.launcher.start = real  # type: ignore[method-assign]
    world.scale(times=2)
    assert len(world.launcher.started) == 1
    (runner,) = world.runners
    assert runner.handle in world.launcher.running
    world.poll(runner)
    assert is_idle(world.runners[0])


def test_one_that_does_not_come_up_in_time_is_a_failed_attempt(world: World) -> None:
    """Row 23."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    token = world.token(runner)
    world.pass_time(240)
    world.scale()
    assert world.launcher.stops == []
    world.pass_time(61)
    world.scale()
    assert world.launcher.stops == [(runner.handle, False)]
    with pytest.raises(Unauthenticated):
        runner_of(token)
    world.scale()
    (runner,) = world.runners
    assert (runner.failures, runner.reason) == (1, "It did not come up within 300 s.")
    assert world.attempts(runner)[0].reason == "It did not come up within 300 s."
    world.pass_time(6)
    world.scale()
    assert [one.number for one in world.attempts(runner)] == [1, 2]
    assert len(world.launcher.running) == 1


def test_one_that_asks_for_no_job_any_more_is_lost(world: World) -> None:
    """Row 27. Its process hangs: it is there, but nobody hears of it. That is no failure of its launch."""
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    world.pass_time(181)
    world.scale(times=2)
    (lost,) = world.ended
    assert (lost.phase, lost.reason) == (RunnerPhase.FAILED, "It has not asked for a job for 180 s.")
    assert [one.failed for one in world.attempts(lost)] == [False]
    (other,) = world.runners
    assert world.launcher.running == [other.handle]


def test_each_attempt_has_a_credential_of_its_own(world: World) -> None:
    """Rows 26 and 43. (Re-create pod on failure and no job assigned.) None is renewed: it ends with its attempt."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    old = world.token(runner)
    world.exit(runner, 1)
    world.scale()
    with pytest.raises(Unauthenticated):
        runner_of(old)
    world.pass_time(6)
    world.scale()
    assert world.token(runner) != old
    assert runner_of(world.token(runner)).pk == runner.pk
    with pytest.raises(Unauthenticated):
        runner_of(old)


def test_a_late_poll_of_a_process_that_is_gone_gets_no_job(world: World) -> None:
    """Row 26. It was let in before its credential was taken back, and looks for a job after that."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    world.exit(runner, 1)
    world.scale()
    world.queue(1)
    assert transitions.claim(runner_id=runner.pk, poll_id="late") is None
    with pytest.raises(Unauthenticated):
        world.playground.fetch(runner)


def test_a_launch_is_of_the_set_as_it_is_then(world: World) -> None:
    world.make_set(minimum=1, template={"work": "/srv/old"})
    (runner_id,) = world.decide().launch
    world.edit(template={"work": "/srv/new"}, labels=["linux", "gpu"])
    begun = transitions.begin_launch(runner_id=runner_id)
    assert begun is not None
    assert (begun.template, begun.labels) == ({"work": "/srv/new"}, ("gpu", "linux"))
    runner = Runner.objects.get(pk=runner_id)
    assert (runner.spec_revision, runner.labels) == (2, ["gpu", "linux"])


def test_a_launcher_that_breaks_is_a_failed_attempt(world: World) -> None:
    """Row 44."""
    world.make_set(minimum=2)
    world.launcher.refusals = [ZeroDivisionError("a fault of the launcher")]
    world.scale()
    broken, fine = world.runners
    assert broken.reason == "The local launcher broke: ZeroDivisionError; see the log of `manage.py scale`."
    assert fine.handle in world.launcher.running

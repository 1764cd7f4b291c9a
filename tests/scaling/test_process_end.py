"""process_ended, process_stopped: what a process leaves behind is settled once, whatever it left."""

from __future__ import annotations

from typing import Any

import pytest

from ci.lifecycle import transitions
from ci.models import Conclusion, Event, JobState, Runner, RunnerPhase
from tests.scaling.world import World


def test_a_clean_end_after_the_job_needs_nothing_more(world: World) -> None:
    """Row 24. (Treat pod failed with runner container exit 0 as success with job id; delete EphemeralRunner when pod
    exits successfully; TestRunnerSelfDeregistered.)"""
    world.make_set()
    world.queue(1)
    world.scale()
    world.work_all()
    world.scale()
    (runner,) = world.ended
    assert (runner.phase, runner.exit_code) == (RunnerPhase.SUCCEEDED, 0)
    assert runner.stopped_at is not None
    assert world.launcher.stops == []  # it went by itself, and there is no service to tell
    assert world.taking_room == 0
    world.scale(times=3)
    assert world.launcher.dropped == [runner.handle]  # what the engine keeps of it, once


def test_a_clean_end_without_a_job_is_an_end_too(world: World) -> None:
    """Row 24. (… exit 0 as success with no job id.)"""
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    world.exit(runner, 0)
    world.scale(times=2)
    (ended,) = world.ended
    assert (ended.pk, ended.phase) == (runner.pk, RunnerPhase.SUCCEEDED)
    assert [(one.exit_code, one.reason, one.failed) for one in world.attempts(runner)] == [(0, "", False)]
    assert world.refreshed().trouble == ""
    assert len(world.runners) == 1


def test_a_process_that_ends_before_it_asks_for_a_job_has_failed(world: World) -> None:
    """Else a wrong command line would be started again and again, at once."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    world.exit(runner, 0)
    world.scale()
    runner.refresh_from_db()
    assert (runner.phase, runner.failures) == (RunnerPhase.PENDING, 1)
    assert runner.reason == "its process ended before it asked for a job"


def test_a_job_whose_process_died_ends_with_the_reason(world: World) -> None:
    """Row 25. (Delete ephemeral runner on failure and job assigned.)"""
    world.make_set()
    runner = world.busy()
    world.exit(runner, 137, "out of memory: the job used more than 512 MiB")
    world.scale()
    job = world.assigned.job
    assert (job.state, job.conclusion) == (JobState.ENDED, Conclusion.FAILURE)
    why = f"runner {runner.name} is gone: out of memory (exit code 137)"
    assert job.end_note == f"{why}."
    runner.refresh_from_db()
    assert (runner.phase, runner.reason, runner.exit_code) == (RunnerPhase.FAILED, f"{why}.", 137)
    assert runner.stopped_at is not None


@pytest.mark.parametrize("has_begun", [False, True], ids=["not begun", "begun"])
def test_what_the_process_wrote_is_for_who_administers_the_set(world: World, *, has_begun: bool) -> None:
    """Everybody who may read a public repository may read why its job ended, and hears nothing of the host."""
    world.make_set()
    world.queue(1)
    world.scale()
    (assigned,) = world.poll_all()
    if has_begun:
        assigned.begin()
    wrote = "exit code 3: /srv/secret/place: cannot open"
    world.exit(assigned.runner, 3, wrote)
    world.scale()
    job = assigned.job
    assert job.conclusion == ("failure" if has_begun else None)
    told = [*Event.objects.filter(run=job.run).order_by("pk").values_list("detail", flat=True), job.end_note]
    assert f"runner {assigned.runner.name} is gone: exit code 3" in " ".join(told)
    assert "secret" not in " ".join(told)
    (attempt,) = world.attempts(assigned.runner)
    assert attempt.reason == wrote


def test_a_job_that_had_not_begun_goes_to_another_runner(world: World) -> None:
    """Row 25."""
    world.make_set()
    world.queue(1)
    world.scale()
    (assigned,) = world.poll_all()
    world.exit(assigned.runner, 1, "killed")
    world.scale()
    assert assigned.job.state == JobState.QUEUED
    world.scale()
    (again,) = world.poll_all()
    assert (again.id, again.runner.pk != assigned.runner.pk) == (assigned.id, True)
    assert world.phases() == ["failed", "pending"]


def test_a_failure_without_a_job_is_a_fresh_attempt(world: World) -> None:
    """Row 26. (Re-create pod on eviction.)"""
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    world.exit(runner, 1, "evicted: the node was low on memory")
    world.scale()
    runner.refresh_from_db()
    assert (runner.phase, runner.ready, runner.handle, runner.token_hash) == (RunnerPhase.PENDING, False, "", None)
    assert (runner.registered_at, runner.launched_at, runner.idle_since) == (None, None, None)
    assert runner.reason == "evicted: the node was low on memory"


@pytest.mark.parametrize("is_up", [False, True], ids=["not up", "up"])
@pytest.mark.parametrize(
    "reason",
    [
        "the init container setup failed: exit code 3",
        "its node had no room for it (OutOfcpu): Node didn't have enough resource",
        "evicted from its node: The node was low on resource: memory.",
        "",
    ],
)
def test_a_failure_without_an_exit_code_is_a_fresh_attempt_after_a_pause(
    world: World, reason: str, *, is_up: bool
) -> None:
    """Row 26. As a cluster tells of a Pod whose runner has no status of its own: what has an end has not vanished.

    (Re-create pod when init container fails before pod phase transitions to Failed, on eviction, on reason starting
    with OutOf; delete ephemeral runner when pod failed before runner state is recorded and job not assigned.)
    """
    world.make_set(minimum=1)
    world.scale()
    if is_up:
        world.poll_all()
    (runner,) = world.runners
    world.exit(runner, None, reason)
    world.scale()
    runner.refresh_from_db()
    told = reason or "its engine does not say how it ended"
    assert (runner.phase, runner.failures, runner.reason) == (RunnerPhase.PENDING, 1, told)
    assert [(one.exit_code, one.reason, one.failed) for one in world.attempts(runner)] == [(None, told, True)]
    world.scale(times=3)
    assert len(world.launcher.started) == 1
    world.pass_time(6)
    world.scale()
    assert [one.number for one in world.attempts(runner)] == [1, 2]
    assert Runner.objects.count() == 1


def test_a_job_that_had_not_begun_goes_on_elsewhere_without_an_exit_code(world: World) -> None:
    """Row 25. (Delete ephemeral runner when pod failed before runner state is recorded and job assigned.)"""
    world.make_set()
    world.queue(1)
    world.scale()
    (assigned,) = world.poll_all()
    world.exit(assigned.runner, None, "evicted from its node: The node was low on resource: memory.")
    world.scale()
    assert assigned.job.state == JobState.QUEUED
    (ended,) = world.ended
    assert (ended.pk, ended.phase) == (assigned.runner.pk, RunnerPhase.FAILED)
    (attempt,) = world.attempts(ended)
    assert attempt.reason == "evicted from its node: The node was low on resource: memory."


def test_a_vanished_process_is_lost_and_not_made_again(world: World) -> None:
    """Row 27. (Not set the phase to succeeded without pod termination status.)"""
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    world.launcher.lose(runner.handle)
    world.scale(times=2)
    (lost,) = world.ended
    assert (lost.pk, lost.phase, lost.reason) == (runner.pk, RunnerPhase.FAILED, "It was lost: its process vanished")
    assert lost.attempts == 1
    assert [one.pk != runner.pk for one in world.runners] == [True]


def test_the_job_of_a_vanished_process_is_lost_with_it(world: World) -> None:
    """Row 27."""
    world.make_set()
    runner = world.busy()
    world.launcher.lose(runner.handle)
    world.scale()
    job = world.assigned.job
    assert (job.conclusion, job.end_note) == ("failure", f"runner {runner.name} is gone: its process vanished.")


def test_one_that_is_not_in_the_list_yet_is_not_lost(world: World) -> None:
    """TestRunnerFinalizerDoesNotTrustStalePodCache: the list may have been made before it was started."""
    world.make_set(minimum=1)
    world.scale()
    real, world.launcher.list = world.launcher.list, lambda set_id=None: []  # type: ignore[method-assign,assignment]
    world.scale()
    world.launcher.list = real  # type: ignore[method-assign]
    assert [runner.phase for runner in world.runners] == [RunnerPhase.PENDING]
    assert world.ended == []


def test_an_engine_that_is_away_says_nothing_about_its_processes(world: World) -> None:
    """TestRunnerFinalizerPreservesPodWhenAuthoritativeReadFails."""
    world.make_set()
    runner = world.busy()
    world.launcher.away = True
    before = Runner.objects.filter(pk=runner.pk).values().get()
    world.scale(times=3)
    assert Runner.objects.filter(pk=runner.pk).values().get() == before
    world.launcher.away = False
    world.assigned.complete()
    assert world.assigned.job.conclusion == "success"


def test_an_end_is_noted_once(world: World) -> None:
    """Row 45."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    world.exit(runner, 1)
    assert transitions.process_ended(runner_id=runner.pk, attempt=1, exit_code=1)
    before = Runner.objects.filter(pk=runner.pk).values().get()
    assert not transitions.process_ended(runner_id=runner.pk, attempt=1, exit_code=1)
    assert not transitions.process_stopped(runner_id=runner.pk, attempt=1)
    assert not transitions.process_ended(runner_id=runner.pk, attempt=9, exit_code=1)
    assert not transitions.launch_failed(runner_id=runner.pk, attempt=1, reason="late", permanent=True)
    assert Runner.objects.filter(pk=runner.pk).values().get() == before
    assert Event.objects.filter(runner=runner, kind="process_ended").count() == 1


def test_one_end_that_cannot_be_noted_keeps_no_other_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 44. A process that nobody can deal with, between two others."""
    world.make_set(minimum=3)
    world.scale()
    before, broken, after = world.runners
    for runner in (before, broken, after):
        world.exit(runner, 1)
    real = transitions.process_ended

    def process_ended(*, runner_id: int, **more: Any) -> bool:
        if runner_id == broken.pk:
            raise ZeroDivisionError("a fault")
        return real(runner_id=runner_id, **more)

    monkeypatch.setattr(transitions, "process_ended", process_ended)
    world.scale()
    assert [Runner.objects.get(pk=runner.pk).failures for runner in (before, broken, after)] == [1, 0, 1]
    monkeypatch.undo()
    world.scale()
    assert Runner.objects.get(pk=broken.pk).failures == 1


def test_a_late_end_of_an_earlier_process_does_not_concern_the_next(world: World) -> None:
    """Row 45."""
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    world.exit(runner, 1)
    world.scale()
    world.pass_time(6)
    world.scale()
    world.queue(1)
    assigned = world.poll(runner)
    assert assigned is not None
    assigned.begin()
    assert not transitions.process_ended(runner_id=runner.pk, attempt=1, exit_code=1)
    assert assigned.job.state == JobState.RUNNING


def test_an_end_after_the_job_is_no_failure_of_the_launch(world: World) -> None:
    world.make_set()
    runner = world.busy()
    world.assigned.complete()
    world.exit(runner, 1, "exit code 1")
    runner_set = world.scale(times=2)
    assert [(one.exit_code, one.failed) for one in world.attempts(runner)] == [(1, False)]
    assert (world.ended[0].phase, runner_set.trouble) == (RunnerPhase.SUCCEEDED, "")


def test_one_whose_job_was_deleted_is_not_started_again(world: World) -> None:
    world.make_set()
    runner = world.busy()
    world.assigned.job.run.delete()
    world.exit(runner, 1)
    world.scale()
    runner.refresh_from_db()
    assert runner.phase == RunnerPhase.FAILED
    assert runner.stopped_at is not None

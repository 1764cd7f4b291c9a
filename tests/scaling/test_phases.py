"""Which phase follows which, whoever asks? Only the legal moves pass, and an end is an end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ci.lifecycle import transitions
from ci.models import Event, Runner, RunnerPhase
from tests.scaling.world import World

ENDS = (RunnerPhase.SUCCEEDED, RunnerPhase.FAILED, RunnerPhase.OUTDATED)
MOVES: dict[str, Callable[[Runner], object]] = {
    RunnerPhase.RUNNING: lambda runner: transitions.start_runner(
        runner_id=runner.pk, job_id=runner.used_job_id or 1, job_name="build"
    ),
    **{
        phase: lambda runner, phase=phase: transitions.finish_runner(  # type: ignore[misc]
            runner_id=runner.pk, phase=phase, reason="the test"
        )
        for phase in ENDS
    },
    # Of a single-use runner nothing leads back: what would make another one idle again ends it.
    RunnerPhase.PENDING: lambda runner: transitions.retire_runner(runner_id=runner.pk, reason="the test"),
}


def in_phase(world: World, phase: str) -> Runner:
    world.make_set(minimum=1)
    world.scale()
    (runner,) = world.runners
    if phase != RunnerPhase.PENDING:
        MOVES[phase](runner)
    runner.refresh_from_db()
    assert runner.phase == phase
    return runner


@pytest.mark.parametrize("after", RunnerPhase)
@pytest.mark.parametrize("before", RunnerPhase)
def test_only_legal_moves_pass(world: World, before: str, after: str) -> None:
    """Rows 1 and 2: all 25 pairs. (Succeeded stands for a retirement where the move asked for is to pending.)"""
    runner = in_phase(world, before)
    row = Runner.objects.filter(pk=runner.pk).values().get()
    events = Event.objects.count()
    MOVES[after](runner)
    runner.refresh_from_db()
    if before in ENDS:
        assert runner.phase == before
        assert Event.objects.count() == events
        changed = {
            name for name, value in Runner.objects.filter(pk=runner.pk).values().get().items() if row[name] != value
        }
        # Row 4: what it was used for is kept also of one that has ended, and nothing else.
        assert changed <= ({"used_job_id", "used_job_name"} if after == RunnerPhase.RUNNING else set())
    elif after == RunnerPhase.PENDING:
        assert runner.phase == RunnerPhase.SUCCEEDED
    else:
        assert runner.phase == after


def test_job_details_are_written_once(world: World) -> None:
    """Rows 4 and 5."""
    runner = in_phase(world, RunnerPhase.FAILED)
    transitions.start_runner(runner_id=runner.pk, job_id=5, job_name="first")
    transitions.start_runner(runner_id=runner.pk, job_id=6, job_name="second")
    runner.refresh_from_db()
    assert (runner.phase, runner.used_job_id, runner.used_job_name) == (RunnerPhase.FAILED, 5, "first")

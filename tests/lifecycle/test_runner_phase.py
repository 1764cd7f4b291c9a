"""start_runner, finish_runner: terminal phases win, details are written once."""

import pytest

from ci.lifecycle import transitions
from ci.models import Runner, RunnerPhase
from tests.playground import Playground

TERMINAL = [RunnerPhase.SUCCEEDED, RunnerPhase.FAILED, RunnerPhase.OUTDATED]


@pytest.mark.parametrize("phase", TERMINAL)
def test_a_terminal_phase_stays_while_the_job_is_noted(playground: Playground, phase: RunnerPhase) -> None:
    runner = playground.runner(ephemeral=True)
    assert transitions.finish_runner(runner_id=runner.pk, phase=phase, reason="over")
    transitions.start_runner(runner_id=runner.pk, job_id=7, job_name="build")
    runner.refresh_from_db()
    assert (runner.phase, runner.used_job_id, runner.used_job_name) == (phase, 7, "build")


@pytest.mark.parametrize("second", TERMINAL)
@pytest.mark.parametrize("first", TERMINAL)
def test_the_first_end_stands(playground: Playground, first: RunnerPhase, second: RunnerPhase) -> None:
    runner = playground.runner(ephemeral=True)
    transitions.finish_runner(runner_id=runner.pk, phase=first, reason="first")
    assert not transitions.finish_runner(runner_id=runner.pk, phase=second, reason="second")
    runner.refresh_from_db()
    assert (runner.phase, runner.reason) == (first, "first")


def test_another_job_never_overwrites_the_first(playground: Playground) -> None:
    runner = playground.runner(ephemeral=True)
    transitions.start_runner(runner_id=runner.pk, job_id=7, job_name="build")
    transitions.start_runner(runner_id=runner.pk, job_id=8, job_name="other")
    assert Runner.objects.get(pk=runner.pk).used_job_id == 7


def test_a_removed_runner_is_ignored(playground: Playground) -> None:
    transitions.start_runner(runner_id=987654, job_id=1, job_name="build")
    assert not transitions.finish_runner(runner_id=987654, phase=RunnerPhase.FAILED, reason="gone")


def test_a_runner_for_many_jobs_does_not_end(playground: Playground) -> None:
    runner = playground.runner()
    assert not transitions.finish_runner(runner_id=runner.pk, phase=RunnerPhase.FAILED, reason="no")
    runner.refresh_from_db()
    assert runner.phase == "pending"

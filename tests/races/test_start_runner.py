"""The guarded write of a runner's `running`: the cases that actions-runner-controller tests, by their names.

There a listener writes through an API server that keeps a resourceVersion; here it is the acknowledgement that writes
through PostgreSQL on the version it read. Row 3 of the feature table; lists A, A2 and A3 of HandleJobStarted.
"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ci.lifecycle import registration, transitions
from ci.lifecycle.errors import Conflict
from ci.lifecycle.transitions.runner_phase import TRIES
from ci.models import Runner, RunnerPhase
from tests.playground import Playground
from tests.races.interleaving import rival_before

PHASE_WRITE = r'UPDATE "ci_runner" SET "phase"|UPDATE "ci_runner" SET "version".*"phase"'
TERMINAL = [RunnerPhase.FAILED, RunnerPhase.SUCCEEDED, RunnerPhase.OUTDATED]


def start(runner: Runner, job_id: int = 7, job_name: str = "build") -> None:
    transitions.start_runner(runner_id=runner.pk, job_id=job_id, job_name=job_name)


def seen(runner: Runner) -> tuple[str, int | None, str]:
    runner.refresh_from_db()
    return runner.phase, runner.used_job_id, runner.used_job_name


def phase_writes(captured: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in captured if "UPDATE" in query["sql"] and '"phase" = ' in query["sql"]]


def test_patches_job_fields_and_running_phase_together(playground: Playground) -> None:
    runner = playground.runner(ephemeral=True)
    start(runner)
    assert seen(runner) == ("running", 7, "build")


def test_repeated_assignment_remains_idempotent(playground: Playground) -> None:
    runner = playground.runner(ephemeral=True)
    start(runner)
    version = Runner.objects.get(pk=runner.pk).version
    start(runner)
    assert seen(runner) == ("running", 7, "build")
    assert runner.version == version


@pytest.mark.parametrize("phase", TERMINAL)
def test_preserves_terminal_phase_while_patching_job_fields(playground: Playground, phase: RunnerPhase) -> None:
    runner = playground.runner(ephemeral=True)
    transitions.finish_runner(runner_id=runner.pk, phase=phase, reason="over")
    start(runner)
    assert seen(runner) == (phase, 7, "build")


def test_guards_the_phase_transition_with_the_observed_version(playground: Playground) -> None:
    runner = playground.runner(ephemeral=True)
    with CaptureQueriesContext(connection) as captured:
        start(runner)
    (write,) = phase_writes(captured)
    assert f'"version" = {runner.version}' in write


@pytest.mark.parametrize("phase", TERMINAL)
def test_writes_no_phase_when_it_is_not_transitioned(playground: Playground, phase: RunnerPhase) -> None:
    runner = playground.runner(ephemeral=True)
    transitions.finish_runner(runner_id=runner.pk, phase=phase, reason="over")
    with CaptureQueriesContext(connection) as captured:
        start(runner)
    assert phase_writes(captured) == []


@pytest.mark.parametrize("phase", TERMINAL)
def test_does_not_resurrect_a_runner_that_ended_concurrently(
    committing_playground: Playground, phase: RunnerPhase
) -> None:
    runner = committing_playground.runner(ephemeral=True)
    with (
        rival_before(
            PHASE_WRITE, lambda: transitions.finish_runner(runner_id=runner.pk, phase=phase, reason="it crashed")
        ) as rival,
        CaptureQueriesContext(connection) as captured,
    ):
        start(runner)
    assert rival.result is True
    assert seen(runner) == (phase, 7, "build")
    assert len(phase_writes(captured)) == 1, "one write that found a newer version; then it read again and let be"


def test_retries_against_fresh_state_when_another_write_comes_between(committing_playground: Playground) -> None:
    runner = committing_playground.runner(ephemeral=True)
    pause = lambda: registration.pause_runner(  # noqa: E731
        runner_id=runner.pk, paused=True, actor=committing_playground.operator
    )
    assert committing_playground.operator.pk
    with rival_before(PHASE_WRITE, pause), CaptureQueriesContext(connection) as captured:
        start(runner)
    assert seen(runner) == ("running", 7, "build")
    assert runner.paused, "what came between is kept"
    assert len(phase_writes(captured)) == 2


def test_gives_up_when_the_runner_keeps_changing(playground: Playground) -> None:
    runner = playground.runner(ephemeral=True)

    writes = []

    def lose_every_race(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        if "UPDATE" in sql and '"phase" = ' in sql:
            writes.append(sql)
            execute("UPDATE ci_runner SET version = version + 1 WHERE id = %s", [runner.pk], False, context)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(lose_every_race), pytest.raises(Conflict):
        start(runner)
    assert len(writes) == TRIES
    assert seen(runner) == ("pending", 7, "build")


def test_transitions_an_idle_runner_to_running_by_its_acknowledgement(playground: Playground) -> None:
    playground.run()
    runner = playground.runner(ephemeral=True)
    assigned = playground.assigned(runner)
    assert seen(runner)[0] == "pending", "given a job, but not yet heard of"
    assigned.heartbeat()
    assert seen(runner) == ("running", assigned.id, "build")


def test_does_not_resurrect_a_runner_that_failed_after_the_read(committing_playground: Playground) -> None:
    committing_playground.run()
    runner = committing_playground.runner(ephemeral=True)
    assigned = committing_playground.assigned(runner)
    fail = lambda: transitions.finish_runner(  # noqa: E731
        runner_id=runner.pk, phase=RunnerPhase.FAILED, reason="its process died"
    )
    with rival_before(PHASE_WRITE, fail):
        assigned.heartbeat()
    assert seen(runner)[0] == "failed"
    assert assigned.job.state == "running", "the job itself goes on until its heartbeats stop"


def test_ignores_a_runner_that_no_longer_exists(playground: Playground) -> None:
    runner = playground.runner(ephemeral=True)
    runner_id = runner.pk
    runner.delete()
    with CaptureQueriesContext(connection) as captured:
        transitions.start_runner(runner_id=runner_id, job_id=7, job_name="build")
    assert phase_writes(captured) == []


def test_positive_control_the_recorder_observes_a_successful_promotion(playground: Playground) -> None:
    runner = playground.runner(ephemeral=True)
    with CaptureQueriesContext(connection) as captured:
        start(runner)
    assert len(phase_writes(captured)) == 1


def test_a_deletion_between_read_and_write_is_swallowed_and_not_retried(committing_playground: Playground) -> None:
    runner = committing_playground.runner(ephemeral=True)
    remove = lambda: registration.remove_runner(runner_id=runner.pk)  # noqa: E731
    with rival_before(PHASE_WRITE, remove), CaptureQueriesContext(connection) as captured:
        start(runner)
    assert not Runner.objects.filter(pk=runner.pk).exists()
    assert len(phase_writes(captured)) == 1


def test_another_job_never_overwrites_the_first(playground: Playground) -> None:
    runner = playground.runner(ephemeral=True)
    start(runner)
    start(runner, job_id=8, job_name="other")
    assert seen(runner) == ("running", 7, "build")

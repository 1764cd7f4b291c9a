"""Two who decide about the same set or runner at once: one of them wins, and the other one sees that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q

from ci.lifecycle import transitions
from ci.lifecycle.transitions.claim import Assignment
from ci.models import ACTIVE_STATES, Job, JobState, LaunchAttempt, Runner, RunnerPhase
from ci.scaling.launchers.protocol import PermanentLaunchError
from tests.races.interleaving import WRITE_RUNNER, rival_before
from tests.scaling.world import World

ROUNDS = 200
FEW = 5


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each returned or raised, begun together on a connection each."""
    barrier = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        barrier.wait(30)
        try:
            results[number] = calls[number]()
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def test_two_looks_at_once_make_each_runner_once(committing_world: World) -> None:
    """Row 12."""
    world = committing_world
    world.make_set(maximum=9)
    world.queue(7)
    results = at_once(*[world.decide] * 4)
    assert [result.desired for result in results] == [7] * 4
    assert Runner.objects.count() == 7


def test_two_scalers_start_each_runner_once(committing_world: World) -> None:
    """Rows 11 and 42. A leader that lost its lock without knowing goes on for a moment beside the new one."""
    world = committing_world
    world.make_set(maximum=6)
    world.queue(6)
    scalers = [world.another_scaler() for _ in range(3)]
    assert at_once(*[scaler.step for scaler in scalers]) == [None] * 3
    world.scale()
    assert len(world.launcher.started) == LaunchAttempt.objects.count() == Runner.objects.count() == 6


def test_a_claim_and_scaling_down_never_both_have_the_runner(committing_world: World) -> None:
    """Row 15. Either the job got it, and it stays; or it goes, and has never had a job."""
    world = committing_world
    world.make_set(minimum=ROUNDS, maximum=ROUNDS)
    world.scale()
    world.queue(ROUNDS)
    won = []
    for number, runner in enumerate(world.runners):
        claimed, retired = at_once(
            lambda runner=runner, number=number: transitions.claim(runner_id=runner.pk, poll_id=f"poll {number}"),  # type: ignore[misc]
            lambda runner=runner: transitions.retire_runner(runner_id=runner.pk, reason="idle"),  # type: ignore[misc]
        )
        assert isinstance(retired, bool), retired
        assert claimed is None or isinstance(claimed, Assignment), claimed
        assert (claimed is None) == retired, "both have it, or neither"
        runner.refresh_from_db()
        assert runner.is_done == retired
        job = Job.objects.filter(runner=runner).first()
        assert (job is None) == retired
        assert runner.used_job_id == (job.pk if job else None)
        won.append(retired)
    assert len(won) == ROUNDS
    assert Job.objects.filter(state=JobState.ASSIGNED).count() == won.count(False)


def test_a_claim_between_look_and_retirement_keeps_its_runner(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 14 and 15, in the one order that counts."""
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    world.pass_time(61)
    world.edit(minimum=0)
    real = transitions.scale_set.__wrapped__.__globals__["_let_go"]  # type: ignore[attr-defined]
    taken = []

    def claim_first(*args: Any) -> Any:
        world.queue(1)
        taken.append(world.poll(runner))
        return real(*args)

    monkeypatch.setitem(transitions.scale_set.__wrapped__.__globals__, "_let_go", claim_first)  # type: ignore[attr-defined]
    world.decide()
    (assigned,) = taken
    assert assigned is not None
    assert [one.pk for one in world.runners] == [runner.pk]
    assigned.begin().complete()
    assert assigned.job.conclusion == "success"


def test_scaling_does_not_wait_for_a_runner_that_is_being_changed(committing_world: World) -> None:
    """Nor can it deadlock with whoever ends many jobs at once and has locked their runners in another order."""
    world = committing_world
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    world.pass_time(61)
    world.edit(minimum=0)
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1 FROM ci_runner WHERE id = %s FOR NO KEY UPDATE", [runner.pk])
            locked.set()
            done.wait(60)
            cursor.execute("ROLLBACK")
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert locked.wait(30)
    try:
        scaled = world.decide()
        assert scaled.wake_at is not None
        assert [one.pk for one in world.runners] == [runner.pk]
    finally:
        done.set()
        thread.join(30)
    world.decide()
    assert world.runners == []


def test_of_two_launches_of_a_set_in_trouble_one_is_begun(committing_world: World) -> None:
    """Row 20. Each alone would find that nothing is being started."""
    world = committing_world
    world.make_set(minimum=2)
    world.launcher.refusals = [PermanentLaunchError("no such image") for _ in range(6)]
    world.scale(times=4)
    world.pass_time(81)
    first, second = [one.pk for one in world.runners if one.next_attempt_at is not None]
    with rival_before(WRITE_RUNNER, lambda: transitions.begin_launch(runner_id=second)) as rival:
        begun = transitions.begin_launch(runner_id=first)
    assert rival.error is None
    assert "ci_runnerset" in rival.waited_in
    assert [begun is not None, rival.result is not None] == [True, False]


def test_an_end_of_the_process_and_a_claim(committing_world: World) -> None:
    """Row 25. Whoever is first: no job stays with a process that is gone."""
    world = committing_world
    world.make_set(maximum=50)
    for number in range(FEW):
        world.edit(minimum=1)
        world.scale(times=2)
        world.poll_all()
        (runner,) = world.runners
        (job,) = world.queue(1)
        world.exit(runner, 1)
        claimed, ended = at_once(
            lambda runner=runner, number=number: transitions.claim(runner_id=runner.pk, poll_id=f"poll {number}"),  # type: ignore[misc]
            lambda runner=runner: transitions.process_ended(  # type: ignore[misc]
                runner_id=runner.pk, attempt=runner.attempts, exit_code=1
            ),
        )
        assert claimed is None or isinstance(claimed, Assignment), claimed
        assert ended is True
        job.refresh_from_db()
        assert (job.state, job.runner_id) == (JobState.QUEUED, None)
        transitions.cancel_job(job_id=job.pk, actor=world.playground.alice)
        world.edit(minimum=0)
        world.pass_time(700)
        world.scale(times=3)


def test_an_end_of_the_process_and_of_its_job(committing_world: World) -> None:
    """Row 2. One of both ends the runner, once."""
    world = committing_world
    world.make_set(maximum=50)
    for _ in range(FEW):
        runner = world.busy()
        assigned = world.assigned
        world.exit(runner, 0)
        _, ended = at_once(
            assigned.complete,
            lambda runner=runner: transitions.process_ended(runner_id=runner.pk, attempt=1, exit_code=0),  # type: ignore[misc]
        )
        assert ended is True
        runner.refresh_from_db()
        outcome = (assigned.job.conclusion, runner.phase)
        assert outcome in {("success", RunnerPhase.SUCCEEDED), ("failure", RunnerPhase.FAILED)}
        assert runner.stopped_at is not None
    assert not Job.objects.filter(Q(state__in=ACTIVE_STATES)).exists()

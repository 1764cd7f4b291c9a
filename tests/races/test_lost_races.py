"""Who loses every race: tries again within a bound, is told then, and nothing is left half done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from ci.lifecycle import registration, transitions
from ci.lifecycle.errors import Conflict
from ci.lifecycle.registration import TRIES as REMOVALS
from ci.lifecycle.transitions.runner_phase import TRIES
from ci.models import ACTIVE_STATES, Job, LaunchAttempt, Runner, RunnerPhase
from tests.playground import Playground
from tests.races.interleaving import LOCK_RUNNER, WRITE_PHASE, amid
from tests.scaling.world import World


@contextmanager
def always_before(point: str, act: Callable[[], None], *, most: int) -> Iterator[list[str]]:
    """`act`, on the actor's connection, before each statement that matches; more than `most` of them are a loop."""
    pattern = re.compile(point, re.DOTALL)
    met: list[str] = []
    acting: list[str] = []

    def hold_up(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if pattern.search(sql) and not acting:
            met.append(sql)
            assert len(met) <= most, "it goes on for ever"
            acting.append(sql)
            try:
                act()
            finally:
                acting.clear()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(hold_up):
        yield met


def start(runner: Runner) -> None:
    transitions.start_runner(runner_id=runner.pk, job_id=7, job_name="build")


def end(runner: Runner) -> None:
    transitions.finish_runner(runner_id=runner.pk, phase=RunnerPhase.FAILED, reason="It crashed.")


@pytest.mark.parametrize("verb", [start, end])
def test_a_phase_that_keeps_losing_is_a_conflict(playground: Playground, verb: Callable[[Runner], None]) -> None:
    runner = playground.runner(ephemeral=True)

    def change() -> None:
        registration.update_runner(runner_id=runner.pk, os="linux")

    with always_before(WRITE_PHASE, change, most=TRIES) as lost, pytest.raises(Conflict, match="kept changing"):
        verb(runner)
    assert len(lost) == TRIES
    runner.refresh_from_db()
    assert (runner.phase, runner.ended_at) == ("pending", None)


def test_a_runner_that_keeps_getting_jobs_is_not_removed(playground: Playground) -> None:
    playground.run()
    runner = playground.runner()
    given = []

    def give() -> None:
        if not Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists():
            given.append(playground.assigned(runner))

    # Each round looks at the version, takes the job back and deletes: at most three locks of the runner.
    with always_before(LOCK_RUNNER, give, most=3 * REMOVALS), pytest.raises(Conflict, match="kept taking jobs"):
        registration.remove_runner(runner_id=runner.pk)
    assert len(given) == REMOVALS
    job = Job.objects.get()
    assert (job.state, job.runner) == ("assigned", runner)
    given[-1].heartbeat()


def test_a_process_that_is_gone_while_its_runner_gets_a_job_leaves_none_behind(playground: Playground) -> None:
    world = World(playground)
    world.make_set(minimum=1)
    world.scale()
    world.poll_all()
    (runner,) = world.runners
    world.queue(1)
    with amid(LOCK_RUNNER, lambda: world.poll(runner)):
        assert transitions.process_ended(runner_id=runner.pk, attempt=1, exit_code=1)
    job = Job.objects.get()
    assert (job.state, job.runner, job.assignment) == ("queued", None, 1)
    assert LaunchAttempt.objects.get().ended_at is not None

"""A poll that was let in by the credential of an earlier process of its runner proves nothing any more."""

from __future__ import annotations

import pytest

from ci.lifecycle.errors import Unauthenticated
from ci.lifecycle.tokens import runner_of
from ci.models import Job, JobState, Runner
from tests.playground import Playground
from tests.races.interleaving import LOCK_RUNNER, rival_before
from tests.scaling.world import World


@pytest.fixture
def world(committing_playground: Playground) -> World:
    """One job, and a set with one runner whose process was started."""
    world = World(committing_playground)
    world.make_set(maximum=1)
    world.queue(1)
    world.scale()
    return world


def another_attempt(world: World) -> None:
    """The process ends, and the next one of the same runner is started."""
    (runner,) = world.runners
    world.exit(runner, 1)
    world.scale()
    world.pass_time(6)
    world.scale()
    assert Runner.objects.get(pk=runner.pk).attempts == 2


def test_it_gets_no_job(world: World) -> None:
    """Case 10 of those that upstream lacks: else nobody would begin the job, and the next process be taken for lost."""
    (runner,) = world.runners
    Runner.objects.filter(pk=runner.pk).update(last_seen_at=runner.launched_at, registered_at=runner.launched_at)
    let_in = runner_of(world.token(runner))
    with (
        rival_before(LOCK_RUNNER, lambda: another_attempt(world)) as rival,
        pytest.raises(Unauthenticated),
    ):
        world.playground.fetch(let_in)
    assert rival.error is None
    job = Job.objects.get()
    assert (job.state, job.assignment) == (JobState.QUEUED, 0)
    (assigned,) = world.poll_all()
    assert assigned.begin().complete().conclusion == "success"


def test_it_does_not_make_the_next_process_one_that_has_come_up(world: World) -> None:
    (runner,) = world.runners
    let_in = runner_of(world.token(runner))
    with (
        rival_before(LOCK_RUNNER, lambda: another_attempt(world)) as rival,
        pytest.raises(Unauthenticated),
    ):
        world.playground.fetch(let_in)
    assert rival.error is None
    (runner,) = world.runners
    assert (runner.attempts, runner.ready, runner.registered_at) == (2, False, None)


def test_it_is_no_sign_of_life_of_the_next_process(world: World) -> None:
    (runner,) = world.runners
    let_in = runner_of(world.token(runner))
    another_attempt(world)
    with pytest.raises(Unauthenticated):
        world.playground.fetch(let_in)
    runner.refresh_from_db()
    assert (runner.attempts, runner.last_seen_at, runner.registered_at) == (2, None, None)

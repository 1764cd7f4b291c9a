"""A circle of runs that wait for each other's groups is broken once, and not when it has opened by itself."""

import textwrap

import pytest

from ci.lifecycle import transitions
from ci.models import ConcurrencyGroup, Job, Run
from ci.workflow import load
from tests.races.interleaving import LOCK_GROUP, WRITE_JOB, rival_before
from tests.races.model import World


@pytest.fixture
def world(transactional_db: None) -> World:
    """With two runs, each in a group for which a job of the other one waits."""
    world = World()
    runner = world.register(ephemeral=False)
    for own, wanted in (("a", "b"), ("b", "a")):
        path = f".github/workflows/{own}.yml"
        text = f"""
            on: push
            concurrency: {own}
            jobs:
              first: {{runs-on: linux, steps: [{{run: echo}}]}}
              second: {{needs: first, runs-on: linux, concurrency: {wanted}, steps: [{{run: echo}}]}}
        """
        cause = transitions.Cause(
            repository=world.repository,
            path=path,
            event="push",
            payload={},
            ref="refs/heads/main",
            sha="0" * 40,
            title=own,
            actor=world.owner,
            trusted=True,
        )
        transitions.create_run(cause, load(path, {path: textwrap.dedent(text)}))
    for _ in range(2):
        held = world.poll(runner)
        assert held is not None
        transitions.heartbeat(job_id=held.id, token=held.token)
        transitions.complete(job_id=held.id, token=held.token, conclusion="success")
    assert waiting() == ["blocked", "blocked"]
    return world


def waiting() -> list[str]:
    return [job.outcome for job in Job.objects.filter(key="second").order_by("id")]


def groups() -> list[int]:
    return list(ConcurrencyGroup.objects.order_by("name").values_list("id", flat=True))


def test_two_that_break_one_circle_at_once_cancel_one_job(world: World) -> None:
    first, second = groups()
    with rival_before(LOCK_GROUP, lambda: transitions.break_circle(second)) as rival:
        transitions.break_circle(first)
    assert rival.error is None
    assert waiting() == ["blocked", "cancelled"]


def test_one_who_looked_before_the_other_had_broken_it_waits_and_changes_nothing(world: World) -> None:
    first, second = groups()
    with rival_before(WRITE_JOB, lambda: transitions.break_circle(second)) as rival:
        transitions.break_circle(first)
    assert rival.error is None
    assert 'FROM "ci_concurrencygroup"' in rival.waited_in
    assert waiting() == ["blocked", "cancelled"]


def test_a_circle_that_a_cancel_opens_meanwhile_costs_no_other_job(world: World) -> None:
    older = Run.objects.earliest("id")
    with rival_before(LOCK_GROUP, lambda: transitions.cancel_run(run_id=older.pk, actor=world.owner)) as rival:
        transitions.break_circle(groups()[0])
    assert rival.error is None
    assert waiting() == ["cancelled", "blocked"]
    world.settle_groups()
    assert waiting() == ["cancelled", "queued"]


def test_a_cancel_waits_for_who_breaks_the_circle(world: World) -> None:
    older = Run.objects.earliest("id")
    with rival_before(WRITE_JOB, lambda: transitions.cancel_run(run_id=older.pk, actor=world.owner)) as rival:
        transitions.break_circle(groups()[0])
    assert rival.error is None
    assert 'FROM "ci_run"' in rival.waited_in
    assert waiting() == ["cancelled", "cancelled"]

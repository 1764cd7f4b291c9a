"""claim, of a set's runner: within what its set serves, and no more of one repository than the set allows."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from ci.lifecycle import demand, wanting
from ci.lifecycle.demand import look
from ci.lifecycle.errors import Conflict, InvalidInput
from ci.lifecycle.runner_sets import save_runner_set
from ci.lifecycle.transitions import claim
from ci.models import Job, JobState, RunnerSet
from tests.scaling.world import World


def test_a_runner_takes_one_job_ever(world: World) -> None:
    """Row 18. Asked again, also by another poll, it gets nothing."""
    world.make_set(minimum=1)
    world.queue(2)
    world.scale()
    runner = world.runners[0]
    assigned = world.poll(runner)
    assert assigned is not None
    assert world.poll(runner) is None
    assigned.begin().complete()
    assert world.poll(runner) is None


def test_only_the_repositories_that_it_is_limited_to_are_served(world: World) -> None:
    """Row 48."""
    other = world.playground.make_repository(name="gadgets")
    world.make_set(repositories=[other])
    world.queue(3)
    assert world.scale().desired == 0
    (job,) = world.queue(1, repository=other)
    assert world.scale().assigned == 1
    (assigned,) = world.poll_all()
    assert assigned.id == job.pk
    world.edit(repositories=[])
    assert world.scale().assigned == 4


def test_a_limit_to_repositories_out_of_its_scope_is_refused(world: World) -> None:
    """Row 48."""
    repository = world.playground.repository
    with pytest.raises(InvalidInput, match="repositories"):
        world.make_set(owner=world.playground.bob, repositories=[repository])
    assert not RunnerSet.objects.exists()
    world.make_set(owner=world.playground.alice, repositories=[repository])
    assert list(world.set.repositories.all()) == [repository]
    with pytest.raises(Conflict, match="has changed"):
        save_runner_set(
            runner_set_id=world.set.pk,
            fields={"repositories": []},
            version=world.set.version + 1,
            actor=world.playground.operator,
        )
    assert list(world.set.repositories.all()) == [repository]


SCOPES = {
    "the instance": (lambda playground: {}, 2),
    "its owner": (lambda playground: {"owner": playground.alice}, 2),
    "another owner": (lambda playground: {"owner": playground.bob}, 0),
    "its repository": (lambda playground: {"repository": playground.repository}, 2),
}


@pytest.mark.parametrize("scope", SCOPES)
def test_demand_is_of_the_jobs_in_scope(world: World, scope: str) -> None:
    """Row 48."""
    fields, expected = SCOPES[scope]
    world.make_set(**fields(world.playground))
    world.queue(2)
    assert world.scale().assigned == expected
    assert len(world.poll_all()) == expected


@pytest.mark.parametrize(
    ("labels", "runs_on", "fits"),
    [
        (["linux"], "linux", True),
        (["linux", "x64"], "[linux, x64]", True),
        (["Linux", "X64", "gpu"], "[x64, LINUX]", True),
        (["linux"], "[linux, x64]", False),
        (["windows"], "linux", False),
    ],
)
def test_labels_of_the_set_must_have_all_of_the_jobs(world: World, labels: list[str], runs_on: str, fits: bool) -> None:
    """Row 48. Demand, claim and the wake-up agree."""
    world.make_set(labels=labels)
    (job,) = world.queue(1, runs_on=runs_on)
    repository = job.run.repository
    word = f"{job.label_set_id}:{repository.pk}:{repository.owner_id}"
    assert wanting.sets_for(word) == ({world.set.pk} if fits else set())
    assert world.scale().assigned == int(fits)
    assert len(world.poll_all()) == int(fits)


def test_a_repository_that_has_its_share_lets_others_pass(world: World) -> None:
    """Row 49. Repository A has 10 jobs and may run 2 at once: B is served meanwhile."""
    other = world.playground.make_repository(name="gadgets")
    world.make_set(maximum=5, maximum_per_repository=2)
    world.queue(10)
    (late,) = world.queue(1, repository=other)
    runner_set = world.scale()
    assert (runner_set.assigned, runner_set.desired) == (3, 3)
    taken = world.poll_all()
    assert [Job.objects.get(pk=one.id).run.repository.name for one in taken] == ["widgets", "widgets", "gadgets"]
    assert taken[-1].id == late.pk
    assert world.scale().desired == 3
    taken[0].begin().complete()
    world.scale()
    assert world.refreshed().assigned == 3  # the next one of A may come


def test_a_place_that_becomes_free_is_taken_by_one_that_waits(world: World) -> None:
    """Row 49."""
    world.make_set(minimum=1, maximum_per_repository=1)
    world.queue(2)
    world.scale()
    (first,) = world.poll_all()
    (idle,) = [runner for runner in world.runners if runner.pk != first.runner.pk]
    assert world.poll(idle) is None
    first.begin().complete()
    assert world.poll(idle) is not None


def test_no_limit_of_nothing(world: World) -> None:
    with pytest.raises(InvalidInput):
        world.make_set(maximum_per_repository=0)


def test_claims_at_once_keep_the_limit_together(committing_world: World) -> None:
    """Row 49. Each alone would find a place left."""
    world = committing_world
    world.make_set(maximum=4, minimum=4, maximum_per_repository=2)
    world.scale()
    world.poll_all()
    runners = world.runners
    assert len(runners) == 4
    world.queue(4)
    barrier = threading.Barrier(4)

    def take(number: int) -> None:
        barrier.wait(30)
        claim(runner_id=runners[number].pk, poll_id=f"poll {number}")
        connection.close()

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert Job.objects.filter(state=JobState.ASSIGNED).count() == 2
    assert look(world.refreshed()).queued == 0


def test_no_more_of_a_queue_is_counted_than_any_set_may_have_runners(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 49. What a repository may not run any more is not in the way of another one's."""
    monkeypatch.setattr(demand, "MOST_COUNTED", 2)
    world.make_set(maximum_per_repository=5)
    world.queue(4)
    assert look(world.set).queued == 2
    world.edit(maximum_per_repository=1)
    world.scale()
    (assigned,) = world.poll_all()
    assigned.begin()
    other = world.playground.make_repository(name="gadgets")
    world.queue(1, repository=other)
    sight = look(world.refreshed())
    assert (sight.queued, sight.active) == (1, 1)

"""Two runs enter one concurrency group at once, or one enters as its holder leaves: one goes, nobody is forgotten."""

import pytest

from ci.lifecycle import transitions
from ci.models import ConcurrencyGroup, Job, Run
from tests.races.interleaving import LOCK_RUN, WRITE_EVENT, rival_before
from tests.races.model import World


@pytest.fixture
def world(transactional_db: None) -> World:
    """With a group that is there already, and empty."""
    world = World()
    world.push("group")
    transitions.cancel_run(run_id=Run.objects.get().pk, actor=world.owner)
    return world


def going() -> list[str]:
    return sorted(run.outcome for run in Run.objects.exclude(state="ended"))


def test_of_two_that_enter_at_once_one_goes(world: World) -> None:
    # The second event of a new run is that it goes: what its group allows is decided by then.
    with rival_before(WRITE_EVENT, lambda: world.push("same group"), nth=2) as rival:
        world.push("group")
    assert rival.error is None
    assert 'FROM "ci_concurrencygroup"' in rival.waited_in
    assert going() == ["queued", "waiting"]


def test_who_enters_while_the_group_is_settled_is_not_forgotten(world: World) -> None:
    world.push("group")
    world.push("group")
    held = world.poll(world.register(ephemeral=False))
    assert held is not None
    transitions.heartbeat(job_id=held.id, token=held.token)
    transitions.complete(job_id=held.id, token=held.token, conclusion="success")
    group = ConcurrencyGroup.objects.get()
    with rival_before(LOCK_RUN, lambda: world.push("same group")) as rival:
        transitions.settle(group.pk)
    assert rival.error is None
    transitions.settle(group.pk)
    assert going() == ["queued", "waiting"]
    assert Job.objects.filter(state="queued").count() == 1

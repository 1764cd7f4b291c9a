"""Two runs enter one concurrency group at once, or one enters as its holder leaves: one goes, nobody is forgotten."""

import pytest

from ci.lifecycle import transitions
from ci.models import ConcurrencyGroup, Job, Run
from tests.playground import WORKFLOW, Playground, states_of
from tests.races.interleaving import LOCK_GROUP, LOCK_RUN, WRITE_EVENT, amid, rival_before
from tests.races.model import World

# What a settling reads once it knows that somebody waits.
HOLDING_RUNS = r'FROM "ci_run" WHERE .*"concurrency_group_id" = .*"state" IN '


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


def test_who_comes_last_into_a_group_is_the_newest_there(world: World) -> None:
    """Whoever holds the group's lock is arriving: what came before, however early it began, has been settled."""
    world.push("group")
    with rival_before(LOCK_GROUP, lambda: world.push("same group")) as rival:
        world.push("group")
    assert rival.error is None
    assert 'FROM "ci_concurrencygroup"' not in rival.waited_in
    came_before = Run.objects.get(workflow_path=".github/workflows/same-group.yml")
    came_last = Run.objects.filter(workflow_path=".github/workflows/group.yml").latest("pk")
    assert (came_before.outcome, came_last.outcome) == ("cancelled", "waiting")


CALLED = """
    on: workflow_call
    jobs:
      deploy: {runs-on: linux, steps: [{run: echo}]}
"""
CALLS_IN_A_GROUP = """
    on: push
    jobs:
      build: {runs-on: linux, steps: [{run: echo}]}
      ship: {needs: build, concurrency: ship, uses: ./.github/workflows/called.yml}
"""


def test_who_comes_while_a_group_is_settled_is_left_to_the_next_settling(committing_playground: Playground) -> None:
    """Its run is not locked: somebody may be stopping it, and what ended must not begin."""
    playground = committing_playground
    workflows = {".github/workflows/called.yml": CALLED, WORKFLOW: CALLS_IN_A_GROUP}
    first, second = [playground.push({**workflows, "nonce": str(number)}) for number in range(2)]
    holder, run = Run.objects.get(push=first), Run.objects.get(push=second)
    alpha, beta = playground.runner(), playground.runner(name="beta")
    playground.assigned(alpha).begin().complete()
    group = ConcurrencyGroup.objects.get()
    transitions.settle(group.pk)
    build = playground.assigned(beta).begin()
    assert build.job.run == run
    cancelled = []

    def leave_and_come() -> None:
        transitions.cancel_run(run_id=holder.pk, actor=playground.alice, force=True)
        build.complete()

    def cancel() -> None:
        if not cancelled:
            cancelled.append(transitions.cancel_run(run_id=run.pk, actor=playground.alice))

    with amid(LOCK_RUN, leave_and_come), amid(HOLDING_RUNS, cancel):
        transitions.settle(group.pk)
    assert states_of(run)["build"] == "success"
    cancel()
    transitions.settle(group.pk)
    assert states_of(run) == {"build": "success", "ship": "cancelled"}
    run.refresh_from_db()
    assert (run.state, run.conclusion) == ("ended", "cancelled")

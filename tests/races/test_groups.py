"""Two runs enter one concurrency group at once, or one enters as its holder leaves: one goes, nobody is forgotten."""

from ci.lifecycle import transitions
from ci.models import ConcurrencyGroup
from tests.playground import Playground
from tests.races.interleaving import LOCK_RUN, WRITE_RUN, rival_before

DEPLOY = """
    on: push
    concurrency: deploy
    jobs:
      deploy: {runs-on: linux, steps: [{run: echo}]}
"""


def test_of_two_that_enter_at_once_one_goes(committing_playground: Playground) -> None:
    playground = committing_playground
    first = playground.run(DEPLOY)
    playground.work(playground.runner())
    second, third = first, playground.run(DEPLOY)
    transitions.cancel_run(run_id=third.pk, actor=playground.alice)
    again = lambda: transitions.rerun(run_id=third.pk, actor=playground.alice)  # noqa: E731
    with rival_before(WRITE_RUN, again) as rival:
        transitions.rerun(run_id=second.pk, actor=playground.alice)
    assert rival.error is None
    for run in (second, third):
        run.refresh_from_db()
    assert sorted([second.outcome, third.outcome]) == ["queued", "waiting"]


def test_a_run_that_enters_while_the_group_is_settled_is_not_forgotten(committing_playground: Playground) -> None:
    playground = committing_playground
    first, second = playground.run(DEPLOY), playground.run(DEPLOY)
    playground.assigned().begin().complete()
    group = ConcurrencyGroup.objects.get()
    with rival_before(LOCK_RUN, lambda: playground.run(DEPLOY)) as rival:
        transitions.settle(group.pk)
    assert rival.error is None
    transitions.settle(group.pk)
    outcomes = []
    for run in (first, second, rival.result):
        run.refresh_from_db()
        outcomes.append(run.outcome)
    assert outcomes == ["success", "queued", "waiting"]

"""A push that is settled, planned and remembered by two at once: each happens once, and what is newer stays."""

from __future__ import annotations

import pytest
from django_q.models import OrmQ

from ci.lifecycle import pushes
from ci.lifecycle.workflow_files import remember_default_branch
from ci.models import Schedule, Workflow
from forge.git import receive
from forge.models import Push, Repository
from forge.repositories import set_default_branch
from tests.playground import WORKFLOW, Playground
from tests.races.interleaving import rival_before

LOCK_REPOSITORY = r'FROM "forge_repository" .*FOR NO KEY UPDATE'
CLOSE_PUSH = r'UPDATE "forge_push" SET "state"'
PLANNED = r'UPDATE "forge_push" SET "planned_at"'
REMEMBER = r'UPDATE "ci_workflow" SET "on_default_branch"'
WAITING = 'FROM "forge_repository"'


def nightly(hour: int) -> str:
    return f"on: {{schedule: [{{cron: '0 {hour} * * *'}}]}}\njobs: {{a: {{runs-on: linux, steps: [{{run: echo}}]}}}}"


def recorded(playground: Playground) -> Push:
    before, after = playground.commit({"a": "1"})
    return Push.objects.create(
        repository=playground.repository, pusher=playground.alice, ref="refs/heads/main", before=before, after=after
    )


def settle(push: Push) -> list[int]:
    return receive.settle(repository=push.repository, push_ids=[push.pk], outcomes={push.ref: True})


@pytest.mark.parametrize("point", [LOCK_REPOSITORY, CLOSE_PUSH])
def test_a_push_is_settled_by_one_of_two(committing_playground: Playground, point: str) -> None:
    """Its own request and a repair that takes it for dead: one of them enqueues its task."""
    push = recorded(committing_playground)
    with rival_before(point, lambda: settle(push)) as rival:
        settled = settle(push)
    assert rival.error is None
    assert sorted([settled, rival.result]) == [[], [push.pk]]
    assert (WAITING in rival.waited_in) == (point == CLOSE_PUSH)
    assert OrmQ.objects.count() == 1


def test_when_a_push_was_planned_is_noted_once(committing_playground: Playground) -> None:
    push = committing_playground.push({WORKFLOW: nightly(3)}, plan=False)
    first = []

    def plan() -> None:
        pushes.plan_push(push.pk)
        first.append(Push.objects.get(pk=push.pk).planned_at)

    with rival_before(PLANNED, plan) as rival:
        pushes.plan_push(push.pk)
    assert rival.error is None
    assert Push.objects.get(pk=push.pk).planned_at == first[0] is not None


def test_what_a_later_push_ended_is_not_remembered_again(committing_playground: Playground) -> None:
    """Who has read the branch writes down what it had before anybody else reads it."""
    playground = committing_playground
    playground.push({WORKFLOW: nightly(3)}, plan=False)
    repository = playground.repository

    def push_and_remember() -> None:
        playground.commit({WORKFLOW: nightly(4)})
        remember_default_branch(repository.pk)

    assert playground.alice
    with rival_before(REMEMBER, push_and_remember) as rival:
        remember_default_branch(repository.pk)
    assert rival.error is None
    assert WAITING in rival.waited_in
    assert [row.cron for row in Schedule.objects.all()] == ["0 4 * * *"]
    assert Workflow.objects.count() == 1


def test_the_row_and_git_name_the_same_default_branch(committing_playground: Playground) -> None:
    playground = committing_playground
    for branch in ("one", "two"):
        playground.commit({"a": branch}, branch=branch)
    repository = playground.repository

    def choose(branch: str) -> None:
        set_default_branch(repository=Repository.objects.get(pk=repository.pk), branch=branch)

    with rival_before(r'INSERT INTO "django_q_ormq"', lambda: choose("two")) as rival:
        choose("one")
    assert rival.error is None
    assert rival.waited_in.startswith('UPDATE "forge_repository"')
    repository.refresh_from_db()
    assert repository.default_branch == "two"
    assert (repository.path / "HEAD").read_text() == "ref: refs/heads/two\n"

"""create, delete, repository_dispatch, workflow_run: events beside push, dispatch and schedule."""

import pytest
from django_q.models import OrmQ

from ci.lifecycle import pushes, tasks
from ci.lifecycle.dispatch import dispatch_repository
from ci.lifecycle.errors import InvalidInput, NotFound
from ci.models import Run
from forge.models import ZERO_SHA, Push
from tests.playground import ONE_JOB, WORKFLOW, Playground


def listening(on: str) -> str:
    return f"name: Listener\non: {on}\njobs: {{a: {{runs-on: linux, steps: [{{run: echo}}]}}}}\n"


def events() -> list[str]:
    return list(Run.objects.order_by("id").values_list("event", flat=True))


def run_tasks() -> None:
    """What a cluster would do with the tasks that are queued now."""
    for row in OrmQ.objects.order_by("id"):
        if "fire_workflow_run" in str(row.func()):
            tasks.fire_workflow_run(*row.args())
        row.delete()


def test_a_new_branch_fires_create_beside_push(playground: Playground) -> None:
    playground.push({WORKFLOW: listening("[push, create]")})
    assert events() == ["push", "create"]
    run = Run.objects.get(event="create")
    assert (run.payload["ref"], run.payload["ref_type"]) == ("main", "branch")
    playground.push({"a": "b"})
    assert events() == ["push", "create", "push"]


def test_a_commit_message_skips_the_push_only(playground: Playground) -> None:
    playground.push({WORKFLOW: listening("[push, create]")}, message="Begin [skip ci]")
    assert events() == ["create"]


def test_planning_again_makes_no_second_one(playground: Playground) -> None:
    push = playground.push({WORKFLOW: listening("[push, create]")})
    Push.objects.update(planned_at=None)
    pushes.plan_push(push.pk)
    assert events() == ["push", "create"]


def test_a_deleted_branch_fires_delete_on_the_default_branch(playground: Playground) -> None:
    push = playground.push({WORKFLOW: listening("delete")})
    deleted = Push.objects.create(
        repository=playground.repository,
        pusher=playground.alice,
        ref="refs/heads/old",
        before=push.after,
        after=ZERO_SHA,
        state="settled",
        settled_at=push.settled_at,
    )
    pushes.plan_push(deleted.pk)
    run = Run.objects.get()
    assert (run.event, run.ref, run.sha) == ("delete", "refs/heads/main", push.after)
    assert run.payload["ref"] == "old"


def test_a_repository_dispatch_carries_its_payload(playground: Playground) -> None:
    playground.push({WORKFLOW: listening("{repository_dispatch: {types: [deploy]}}")})
    (run,) = dispatch_repository(
        repository=playground.repository,
        event_type="deploy",
        client_payload={"version": 3},
        actor=playground.bob,
    )
    assert run.payload["client_payload"] == {"version": 3}
    assert run.actor == playground.bob


def test_another_type_starts_nothing(playground: Playground) -> None:
    playground.push({WORKFLOW: listening("{repository_dispatch: {types: [deploy]}}")})
    assert not dispatch_repository(
        repository=playground.repository, event_type="other", client_payload={}, actor=playground.bob
    )


def test_a_dispatch_is_bounded_and_needs_a_branch(playground: Playground) -> None:
    with pytest.raises(NotFound):
        dispatch_repository(repository=playground.repository, event_type="x", client_payload={}, actor=None)
    with pytest.raises(InvalidInput):
        dispatch_repository(repository=playground.repository, event_type="x" * 101, client_payload={}, actor=None)


def test_a_completed_run_starts_what_listens_for_it(playground: Playground) -> None:
    other = ".github/workflows/after.yml"
    playground.push({WORKFLOW: ONE_JOB, other: listening("{workflow_run: {workflows: [CI], types: [completed]}}")})
    run_tasks()
    assert events() == ["push"]
    playground.work(playground.runner())
    run_tasks()
    caused = Run.objects.get(event="workflow_run")
    source = Run.objects.get(event="push")
    assert caused.source_run == source
    assert caused.payload["workflow_run"]["conclusion"] == "success"
    assert caused.payload["workflow_run"]["head_sha"] == source.sha


def test_delivering_the_task_twice_makes_no_second_one(playground: Playground) -> None:
    other = ".github/workflows/after.yml"
    playground.push({WORKFLOW: ONE_JOB, other: listening("{workflow_run: {workflows: [CI], types: [completed]}}")})
    playground.work(playground.runner())
    source = Run.objects.get(event="push")
    for _ in range(2):
        tasks.fire_workflow_run(source.pk, 1, "completed")
    assert events() == ["push", "workflow_run"]


def test_runs_that_cause_each_other_end_after_three(playground: Playground) -> None:
    playground.push({WORKFLOW: listening("{push: , workflow_run: {workflows: [Listener], types: [completed]}}")})
    runner = playground.runner()
    for _ in range(6):
        playground.work(runner)
        run_tasks()
    assert events() == ["push", *["workflow_run"] * 3]


def test_a_group_may_keep_all_that_wait(playground: Playground) -> None:
    text = "concurrency: {group: g, queue: max}" + ONE_JOB.replace("\n    ", "\n")
    runs = [playground.run(text) for _ in range(3)]
    for run in runs:
        run.refresh_from_db()
    assert [run.outcome for run in runs] == ["queued", "waiting", "waiting"]

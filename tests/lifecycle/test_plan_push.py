"""plan_push, report: what a push starts, once, and what the person is told."""

from datetime import UTC
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.module_loading import import_string
from django_q.models import OrmQ

from ci.lifecycle import pushes, tasks
from ci.models import Run, Schedule, Workflow
from forge.models import ZERO_SHA, Push
from forge.repositories import set_default_branch
from tests.playground import ONE_JOB, WORKFLOW, Playground, states_of


def runs(playground: Playground) -> list[str]:
    return list(Run.objects.order_by("id").values_list("workflow_name", flat=True))


def test_every_workflow_of_the_commit_that_matches_runs(playground: Playground) -> None:
    playground.push(
        {
            WORKFLOW: ONE_JOB,
            ".github/workflows/release.yaml": "name: Release\non: {push: {tags: ['v*']}}\n"
            "jobs: {a: {runs-on: linux, steps: [{run: echo}]}}",
            ".github/workflows/docs.yml": "name: Docs\non: {push: {paths: ['docs/**']}}\n"
            "jobs: {a: {runs-on: linux, steps: [{run: echo}]}}",
            ".github/workflows/nested/no.yml": ONE_JOB,
            "docs/index.md": "# Docs",
        }
    )
    assert runs(playground) == ["CI", "Docs"]


def test_planning_twice_changes_nothing(playground: Playground) -> None:
    push = playground.push({WORKFLOW: ONE_JOB})
    Push.objects.filter(pk=push.pk).update(planned_at=None)
    pushes.plan_push(push.pk)
    assert runs(playground) == ["CI"]
    assert Workflow.objects.get().run_count == 1


def statements(playground: Playground, legs: int) -> int:
    """That it takes to plan a push with a matrix of so many legs."""
    numbers = ", ".join(str(number) for number in range(legs))
    job = f"{{runs-on: linux, strategy: {{matrix: {{n: [{numbers}]}}}}, steps: [{{run: echo}}]}}"
    push = playground.push({WORKFLOW: f"name: CI\non: push\njobs: {{wide: {job}}}"}, plan=False)
    with CaptureQueriesContext(connection) as seen:
        (run,) = pushes.plan_push(push.pk)
    assert run.jobs.filter(state="queued").count() == run.events.filter(kind="queued").count() == legs
    return len(seen)


def test_a_wide_matrix_is_planned_by_as_many_statements_as_a_narrow_one(playground: Playground) -> None:
    statements(playground, 2)  # makes the rows that the others find
    assert statements(playground, 256) == statements(playground, 3)


def test_a_push_that_was_not_settled_starts_nothing(playground: Playground) -> None:
    push = playground.push({WORKFLOW: ONE_JOB}, plan=False)
    Push.objects.filter(pk=push.pk).update(state="refused")
    assert pushes.plan_push(push.pk) == []


@pytest.mark.parametrize("mark", ["[skip ci]", "[ci skip]", "[no ci]"])
def test_the_commit_message_can_skip(playground: Playground, mark: str) -> None:
    playground.push({WORKFLOW: ONE_JOB}, message=f"Fix a typo {mark}")
    assert runs(playground) == []


def test_a_deleted_branch_starts_nothing(playground: Playground) -> None:
    pushed = playground.push({WORKFLOW: ONE_JOB})
    deleted = Push.objects.create(
        repository=playground.repository,
        pusher=playground.alice,
        ref="refs/heads/old",
        before=pushed.after,
        after=ZERO_SHA,
        state="settled",
        settled_at=pushed.settled_at,
    )
    assert pushes.plan_push(deleted.pk) == []


def test_a_push_by_a_job_starts_nothing(playground: Playground) -> None:
    push = playground.push({WORKFLOW: ONE_JOB}, plan=False)
    Push.objects.filter(pk=push.pk).update(by_job=True)
    assert pushes.plan_push(push.pk) == []


def test_a_disabled_workflow_does_not_run(playground: Playground) -> None:
    playground.push({WORKFLOW: ONE_JOB})
    Workflow.objects.update(enabled=False)
    playground.push({"README.md": "# Hello"})
    assert len(runs(playground)) == 1


def test_the_run_knows_its_commit_and_event(playground: Playground) -> None:
    push = playground.push({WORKFLOW: ONE_JOB}, message="Add the build")
    run = Run.objects.get()
    assert (run.event, run.ref, run.sha, run.title) == ("push", "refs/heads/main", push.after, "Add the build")
    assert run.payload["head_commit"]["message"] == "Add the build"
    assert (run.payload["before"], run.payload["after"]) == (ZERO_SHA, push.after)
    assert run.actor == playground.alice


def test_a_run_name_is_its_title(playground: Playground) -> None:
    run = playground.run("run-name: Build by ${{ github.actor }}" + ONE_JOB.replace("\n    ", "\n"))
    assert run.title == "Build by alice"


def test_a_group_by_run_id_is_possible(playground: Playground) -> None:
    run = playground.run("concurrency: ci-${{ github.run_id }}" + ONE_JOB.replace("\n    ", "\n"))
    assert run.concurrency_group is not None
    assert run.concurrency_group.name == f"ci-{run.pk}"


def test_a_broken_file_is_a_startup_failure_with_every_problem(playground: Playground) -> None:
    run = playground.run("on: push\njobs:\n  build:\n    steps:\n      - run: echo\n        bogus: 1\n")
    assert (run.state, run.conclusion) == ("ended", "startup_failure")
    assert {problem["line"] for problem in run.problems} == {4, 6}
    assert states_of(run) == {}


@pytest.mark.parametrize(
    "text",
    [
        b"on: push\njobs: \xff\xfe",
        b"on: push\n\tjobs: {}",
        b"[" * 10_000,
        b"a: &a [x]\nb: *c",
        b"# " + b"x" * 5_000_000,
    ],
    ids=["not UTF-8", "a tab", "deep", "an unknown alias", "5 MB"],
)
def test_an_unreadable_file_is_a_startup_failure(playground: Playground, text: bytes) -> None:
    playground.push({WORKFLOW: text})
    run = Run.objects.get()
    assert run.conclusion == "startup_failure"
    assert run.problems[0]["message"]


def test_a_broken_file_does_not_stop_the_others(playground: Playground) -> None:
    playground.push({WORKFLOW: ONE_JOB, ".github/workflows/bad.yml": "on: [nonsense]"})
    assert set(Run.objects.values_list("conclusion", flat=True)) == {None, "startup_failure"}


def test_a_file_whose_name_is_no_utf_8_is_told_of_and_does_not_stop_the_others(playground: Playground) -> None:
    playground.push({WORKFLOW: ONE_JOB, ".github/workflows/b\udcff.yml": ONE_JOB, "c\udcff.txt": "text"})
    odd, good = Run.objects.order_by("workflow_path")
    assert (odd.workflow_path, odd.conclusion) == (".github/workflows/b\ufffd.yml", "startup_failure")
    assert [problem["message"] for problem in odd.problems] == ["The name of the file is not UTF-8. Rename it"]
    assert (good.workflow_path, good.state) == (WORKFLOW, "queued")
    assert Workflow.objects.filter(on_default_branch=True).count() == 2


def test_the_person_is_told_of_runs_with_links(playground: Playground) -> None:
    push = playground.push({WORKFLOW: ONE_JOB}, plan=False)
    (line,) = pushes.report([push.pk])
    run = Run.objects.get()
    assert line == f"Workflow CI #1 started: http://127.0.0.1:8000/alice/widgets/actions/runs/{run.pk}/"


def test_the_person_is_told_what_is_wrong_where(playground: Playground) -> None:
    push = playground.push({WORKFLOW: "on: push\njobs:\n  build:\n    steps: [{run: echo}]\n"}, plan=False)
    first, *problems = pushes.report([push.pk])
    assert first.startswith(f"Workflow {WORKFLOW} cannot run: http")
    assert problems == [f"  {WORKFLOW}:4:5: Required property is missing: runs-on"]


def test_the_default_branch_is_remembered(playground: Playground) -> None:
    cron = "name: Nightly\non: {schedule: [{cron: '0 3 * * *'}]}\njobs: {a: {runs-on: linux, steps: [{run: echo}]}}"
    playground.push({WORKFLOW: cron})
    schedule = Schedule.objects.get()
    assert (schedule.cron, schedule.next_at.astimezone(UTC).hour) == ("0 3 * * *", 3)
    playground.push({WORKFLOW: cron.replace("0 3", "0 4")})
    assert Schedule.objects.get().cron == "0 4 * * *"
    assert Workflow.objects.get().events == ["schedule"]


def nightly(hour: int) -> str:
    return f"on: {{schedule: [{{cron: '0 {hour} * * *'}}]}}\njobs: {{a: {{runs-on: linux, steps: [{{run: echo}}]}}}}"


def test_another_default_branch_brings_its_own_schedules_and_ends_the_old_ones(playground: Playground) -> None:
    playground.push({WORKFLOW: nightly(3), ".github/workflows/old.yml": nightly(5)})
    playground.push({WORKFLOW: nightly(4)}, branch="next")
    set_default_branch(repository=playground.repository, branch="next")
    (task,) = [row.task for row in OrmQ.objects.all() if row.task["func"] == settings.DEFAULT_BRANCH_TASK]
    import_string(task["func"])(*task["args"])
    assert [row.cron for row in Schedule.objects.order_by("cron")] == ["0 4 * * *"]


def test_a_push_that_is_planned_late_brings_nothing_back(playground: Playground) -> None:
    early = playground.push({WORKFLOW: nightly(3)}, plan=False)
    playground.push({WORKFLOW: nightly(4)})
    pushes.plan_push(early.pk)
    assert [row.cron for row in Schedule.objects.all()] == ["0 4 * * *"]


def test_other_branches_schedule_nothing(playground: Playground) -> None:
    playground.push({"README.md": "# Hello"})
    cron = "on: {schedule: [{cron: '0 3 * * *'}]}\njobs: {a: {runs-on: linux, steps: [{run: echo}]}}"
    playground.push({WORKFLOW: cron}, branch="feature")
    assert not Schedule.objects.exists()


def test_the_person_is_told_what_a_started_workflow_needs_of_its_runner(playground: Playground) -> None:
    pushed = playground.push({WORKFLOW: "on: push\njobs:\n  a:\n    runs-on: linux\n    container: node:20\n"})
    started, notice = pushes.report([pushed.pk])
    assert " #1 started: " in started
    assert notice == (
        f"  {WORKFLOW}:5:5: The bundled runner cannot start containers: this job needs a runner that has Docker"
    )


def test_the_task_of_a_push_that_was_planned_at_once_asks_one_question(
    playground: Playground, django_assert_num_queries: Any
) -> None:
    push = playground.push({WORKFLOW: ONE_JOB})
    with django_assert_num_queries(1):
        tasks.plan_push(push.pk)
    assert Run.objects.filter(push=push).count() == 1


def test_the_task_of_a_push_that_nobody_has_planned_plans_it(playground: Playground) -> None:
    push = playground.push({WORKFLOW: ONE_JOB}, plan=False)
    tasks.plan_push(push.pk)
    assert Run.objects.filter(push=push).count() == 1

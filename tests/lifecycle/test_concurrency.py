"""Concurrency groups of runs and jobs: one running, one pending."""

import pytest
from django_q.models import OrmQ

from ci.lifecycle import sweeps, transitions
from ci.lifecycle.transitions import concurrency
from ci.models import ConcurrencyGroup, Run
from tests.playground import Playground, jobs_of, states_of


def workflow(extra: str = "") -> str:
    return f"""
        on: push
        concurrency:
          group: deploy
          {extra}
        jobs:
          deploy: {{runs-on: linux, steps: [{{run: echo}}]}}
    """


JOB_GROUP = """
    on: push
    jobs:
      build: {runs-on: linux, steps: [{run: echo}]}
      deploy: {runs-on: linux, concurrency: prod, steps: [{run: echo}]}
"""


def settle() -> None:
    """What the queued tasks would do."""
    for group in ConcurrencyGroup.objects.all():
        transitions.settle(group.pk)


def outcomes(*runs: Run) -> list[str]:
    for run in runs:
        run.refresh_from_db()
    return [run.outcome for run in runs]


def test_one_runs_one_waits_and_an_older_waiter_is_superseded(playground: Playground) -> None:
    first, second, third = (playground.run(workflow()) for _ in range(3))
    assert outcomes(first, second, third) == ["queued", "cancelled", "waiting"]
    assert jobs_of(second)["deploy"].cancel_reason == "superseded"


def test_the_waiter_goes_when_the_holder_ends(playground: Playground) -> None:
    first, second = playground.run(workflow()), playground.run(workflow())
    runner = playground.runner()
    playground.assigned(runner).begin().complete()
    assert any("settle_group" in str(task.func()) for task in OrmQ.objects.all())
    settle()
    assert outcomes(first, second) == ["success", "queued"]
    assert states_of(second) == {"deploy": "queued"}


def test_the_watch_lets_the_waiter_go_where_the_task_was_lost(playground: Playground) -> None:
    first, second = playground.run(workflow()), playground.run(workflow())
    playground.assigned().begin().complete()
    OrmQ.objects.all().delete()
    assert sweeps.settle_groups() == 1
    assert outcomes(first, second) == ["success", "queued"]
    assert sweeps.settle_groups() == 0


def test_beyond_the_most_that_can_wait_the_newest_is_turned_away(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrency, "MAX_WAITING", 2)
    runs = [playground.run(workflow("queue: max")) for _ in range(4)]
    assert outcomes(*runs) == ["queued", "waiting", "waiting", "cancelled"]
    assert jobs_of(runs[3])["deploy"].end_note.startswith("2 wait in its concurrency group already")


def test_cancel_in_progress_cancels_the_holder(playground: Playground) -> None:
    first = playground.run(workflow())
    assigned = playground.assigned().begin()
    second = playground.run(workflow("cancel-in-progress: true"))
    assert assigned.heartbeat().cancel == "superseded"
    assert outcomes(second) == ["waiting"]
    assigned.complete("cancelled")
    settle()
    assert outcomes(first, second) == ["cancelled", "queued"]


def test_a_queued_holder_makes_room_at_once(playground: Playground) -> None:
    first = playground.run(workflow())
    second = playground.run(workflow("cancel-in-progress: true"))
    assert outcomes(first, second) == ["cancelled", "queued"]


def test_other_repositories_have_groups_of_their_own(playground: Playground) -> None:
    first = playground.run(workflow())
    other = playground.run(workflow(), repository=playground.make_repository(name="other"))
    assert outcomes(first, other) == ["queued", "queued"]


def test_a_waiting_run_can_be_cancelled(playground: Playground) -> None:
    _, second = playground.run(workflow()), playground.run(workflow())
    transitions.cancel_run(run_id=second.pk, actor=playground.alice)
    assert outcomes(second) == ["cancelled"]


def test_a_job_waits_for_its_group(playground: Playground) -> None:
    first, second = playground.run(JOB_GROUP), playground.run(JOB_GROUP)
    settle()
    assert states_of(first) == {"build": "queued", "deploy": "queued"}
    assert states_of(second) == {"build": "queued", "deploy": "blocked"}
    playground.work(playground.runner())
    settle()
    assert states_of(second)["deploy"] == "queued"


def test_settling_once_too_often_changes_nothing(playground: Playground) -> None:
    first, second = playground.run(workflow()), playground.run(workflow())
    before = [run.version for run in (first, second)]
    settle()
    settle()
    outcomes(first, second)
    assert [run.version for run in (first, second)] == before


def test_a_rerun_enters_the_group_again(playground: Playground) -> None:
    first = playground.run(workflow())
    playground.work(playground.runner())
    playground.run(workflow())
    transitions.rerun(run_id=first.pk, actor=playground.alice)
    assert outcomes(first) == ["waiting"]


def test_a_job_in_the_group_of_its_own_run_is_cancelled_at_once(playground: Playground) -> None:
    run = playground.run("""
        on: push
        concurrency: deploy
        jobs:
          deploy: {runs-on: linux, concurrency: {group: Deploy, cancel-in-progress: true}, steps: [{run: echo}]}
          after: {needs: deploy, runs-on: linux, steps: [{run: echo}]}
    """)
    assert states_of(run) == {"deploy": "cancelled", "after": "skipped"}
    assert jobs_of(run)["deploy"].end_note.startswith("The run itself holds its concurrency group and waits for it")
    assert outcomes(run) == ["cancelled"]
    settle()
    assert outcomes(playground.run(workflow())) == ["queued"]


def crossing(own: str, wanted: str) -> str:
    """A run in one group, whose second job wants another."""
    return f"""
        on: push
        concurrency: {own}
        jobs:
          first: {{runs-on: linux, steps: [{{run: echo}}]}}
          second: {{needs: first, runs-on: linux, concurrency: {wanted}, steps: [{{run: echo}}]}}
    """


def test_of_runs_that_wait_for_each_others_groups_the_newest_job_gives_way(playground: Playground) -> None:
    runs = [playground.run(crossing(*pair)) for pair in (("a", "b"), ("b", "c"), ("c", "a"))]
    playground.work(playground.runner())
    settle()
    assert [states_of(run)["second"] for run in runs] == ["blocked"] * 3
    for task in [task for task in OrmQ.objects.all() if "break_circle" in task.task["func"]]:
        transitions.break_circle(*task.task["args"])
    assert outcomes(*runs) == ["running", "running", "cancelled"]
    note = jobs_of(runs[2])["second"].end_note
    assert note.startswith("It waits for the concurrency group a for ever: what holds that waits, by way of ")
    settle()
    assert playground.work(playground.runner(name="beta")) == ["second"]
    settle()
    assert playground.work(playground.runner(name="gamma")) == ["second"]
    assert outcomes(*runs) == ["success", "success", "cancelled"]


def test_a_job_that_waits_for_a_group_in_no_circle_waits_on(playground: Playground) -> None:
    runs = [playground.run(crossing("a", "b")), playground.run(crossing("b", "c"))]
    playground.assigned(playground.runner(name="beta")).begin().complete()
    settle()
    assert [states_of(run)["second"] for run in runs] == ["blocked", "blocked"]
    assert not [task for task in OrmQ.objects.all() if "break_circle" in task.task["func"]]
    for group in ConcurrencyGroup.objects.all():
        transitions.break_circle(group.pk)
    assert states_of(runs[0])["second"] == "blocked"

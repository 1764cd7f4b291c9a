"""Do the counts and the pages of every list say what the rows say, in whatever state these are?"""

import re
from collections import Counter
from typing import Any

import pytest
from django.test import Client

from ci.models import Job, Log, LogChunk, Run, Step, Workflow
from tests.playground import Playground
from tests.web.test_runs import RUNS

WORKFLOW = """
    name: CI
    on: push
    jobs:
      a: {runs-on: linux, steps: [{run: x}]}
      b: {runs-on: linux, steps: [{run: x}]}
      c: {needs: [a, b], runs-on: linux, steps: [{run: x}]}
"""
STATES = {"active", "queued", "running", "success", "failure", "cancelled"}


@pytest.fixture
def rows(playground: Playground, alice: Client) -> list[Run]:
    """Runs in all states, so many that each list has three pages and one row."""
    runner = playground.runner()
    for conclusion in ("success", "failure", "success"):
        playground.run(WORKFLOW)
        while (assigned := playground.fetch(runner)) is not None:
            assigned.begin()
            assigned.log("one line", "another")
            assigned.complete(conclusion)
    cancelled = playground.run(WORKFLOW)
    alice.post(f"{RUNS}runs/{cancelled.pk}/cancel/")
    playground.run(WORKFLOW)
    playground.assigned(runner).begin().log("a line of a running job")
    playground.run(WORKFLOW)
    with_more(playground.run(WORKFLOW), 55)
    return list(Run.objects.order_by("-id"))


def with_more(run: Run, count: int) -> None:
    """So many like this one, which has not begun, as the next runs of its workflow."""
    first = run.number + 1
    more = []
    for number in range(first, first + count):
        run.pk, run.push, run.number = None, None, number
        more.append(Run(**{field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}))
    Run.objects.bulk_create(more)
    Workflow.objects.filter(pk=run.workflow_id).update(run_count=first + count - 1)


def matching(rows: list[Run], state: str) -> set[int]:
    if state == "active":
        return {run.pk for run in rows if not run.is_ended}
    return {run.pk for run in rows if state in ("", run.state, run.conclusion)}


@pytest.mark.parametrize("state", ["", *sorted(STATES)])
def test_the_pages_of_the_list_hold_each_run_once(alice: Client, rows: list[Run], state: str) -> None:
    shown: list[int] = []
    for page in range(1, 5):
        text = alice.get(f"{RUNS}?state={state}&page={page}").content.decode()
        found = [int(number) for number in re.findall(rf'href="{RUNS}runs/(\d+)/"', text)]
        if page > 1 and set(found) <= set(shown):  # beyond the last page the last one is shown
            break
        shown += dict.fromkeys(found)
    expected = matching(rows, state)
    assert shown == sorted(expected, reverse=True)
    said = re.search(r"(\d+) runs?</span>", text)
    assert said is not None and int(said[1]) == len(expected)


def test_the_api_pages_hold_each_run_once(alice: Client, rows: list[Run]) -> None:
    address: str | None = "/api/v1/repositories/alice/widgets/runs"
    shown = []
    while address is not None:
        answer = alice.get(address).json()
        assert answer["count"] == len(rows)
        shown += [row["id"] for row in answer["results"]]
        address = answer["next"]
    assert shown == [run.pk for run in rows]


def test_the_admin_counts_what_there_is(playground: Playground, browser: Any, rows: list[Run]) -> None:
    admin = browser(playground.operator)
    for name, count in (("run", len(rows)), ("job", Job.objects.count()), ("workflow", Workflow.objects.count())):
        assert admin.get(f"/admin/ci/{name}/").context["cl"].result_count == count
    states = Counter(Job.objects.values_list("state", flat=True))
    for state, count in states.items():
        assert admin.get(f"/admin/ci/job/?state__exact={state}").context["cl"].result_count == count


def test_the_page_of_a_run_counts_its_jobs(alice: Client, rows: list[Run]) -> None:
    for run in rows[-6:]:
        context = alice.get(f"{RUNS}runs/{run.pk}/").context
        jobs = list(Job.objects.filter(run=run))
        assert context["job_count"] == len(jobs) == 3
        assert context["ended_count"] == sum(job.is_ended for job in jobs)


def test_the_counters_in_the_rows_agree_with_what_they_count(rows: list[Run]) -> None:
    workflow = Workflow.objects.get()
    numbers = list(Run.objects.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, workflow.run_count + 1))
    assert Log.objects.exists()
    for log in Log.objects.all():
        assert log.lines == sum(LogChunk.objects.filter(job=log.job_id).values_list("line_count", flat=True)) > 0
    for step in Step.objects.filter(state="ended"):
        assert step.first_line + step.line_count <= Log.objects.get(job=step.job).lines

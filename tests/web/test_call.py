"""Does a call of a reusable workflow show which one it calls, and its jobs below it?"""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from ci.lifecycle import transitions
from ci.lifecycle.waiting import why
from ci.models import Job, Run
from tests.playground import WORKFLOW, Playground, jobs_of

CALLED = ".github/workflows/called.yml"
CALLER = """
    name: Caller
    on: push
    jobs:
      lint: {runs-on: linux, environment: staging, steps: [{run: make lint}]}
      call:
        uses: ./.github/workflows/called.yml
        with: {level: "<b>high</b>"}
      last: {needs: call, runs-on: linux, steps: [{run: echo}]}
"""
CALLEE = """
    on:
      workflow_call:
        inputs: {level: {type: string, required: true}}
        outputs: {built: {value: "${{ jobs.build.outputs.version }}"}}
    jobs:
      build: {runs-on: linux, outputs: {version: x}, steps: [{run: echo}]}
      check: {needs: build, runs-on: linux, steps: [{run: echo}]}
"""


def push(playground: Playground, files: Mapping[str, str] | None = None) -> Run:
    playground.push(files or {WORKFLOW: CALLER, CALLED: CALLEE})
    return Run.objects.get(workflow_path=WORKFLOW)


def page(run: Run, job: Job | None = None, more: str = "") -> str:
    address = f"/alice/widgets/actions/runs/{run.pk}/"
    return f"{address}jobs/{job.pk}/{more}" if job is not None else address + more


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code in (200, 286), response.status_code
    return " ".join(response.content.decode().split())


def test_the_called_jobs_stand_below_their_call(alice: Client, playground: Playground) -> None:
    text = text_of(alice, page(push(playground)))
    prefix = '<span class="visually-hidden">call / </span>'
    order = ["Level 1", ">call<", f"{prefix}build", f"{prefix}check", ">lint<", "Level 2", ">last<"]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)
    assert text.count('<li class="indent-1">') == 2
    assert "0 of 4 jobs have ended" in text


def test_the_calls_page_says_what_it_calls_and_lists_its_jobs(alice: Client, playground: Playground) -> None:
    # The run's group is not what a call waits for whose jobs run.
    run = push(playground, {WORKFLOW: f"{CALLER}    concurrency: of-the-run\n", CALLED: CALLEE})
    call = jobs_of(run)["call"]
    assert why(call) == "Waits for the jobs of the workflow that it calls."
    text = text_of(alice, page(run, call))
    assert f'href="/alice/widgets/blob/{run.sha}/{CALLED}">./{CALLED}</a>' in text
    assert "&lt;b&gt;high&lt;/b&gt;" in text
    for job in Job.objects.filter(parent=call):
        assert f'<a href="{page(run, job)}">' in text
    for absent in ("Raw log", "log-cursor", "Waits for the jobs", 'id="steps"'):
        assert absent not in text


def test_its_outputs_show_once_it_has_ended(alice: Client, playground: Playground) -> None:
    run, runner = push(playground), playground.runner()
    while (assigned := playground.fetch(runner)) is not None:
        assigned.begin().complete(outputs={"version": "7.1"} if assigned.job.key == "build" else {})
    text = text_of(alice, page(run, jobs_of(run)["call"]))
    assert "1 output" in text
    assert "7.1" in text
    assert "Re-run this job" in text


def test_an_inner_job_leads_to_its_call_and_an_environment_is_named(alice: Client, playground: Playground) -> None:
    run = push(playground)
    jobs = jobs_of(run)
    inner = text_of(alice, page(run, jobs["call / build"]))
    assert f'called by <a href="{page(run, jobs["call"])}">call</a>' in inner
    assert "environment staging" in text_of(alice, page(run, jobs["lint"]))


def test_a_call_that_waits_says_for_what(alice: Client, playground: Playground) -> None:
    run = push(playground, {WORKFLOW: CALLER.replace("uses:", "needs: lint\n        uses:"), CALLED: CALLEE})
    text = text_of(alice, page(run, jobs_of(run)["call"]))
    assert "Not called yet" in text
    assert "Waits for lint." in text


def test_cancelling_the_call_cancels_its_jobs(alice: Client, playground: Playground) -> None:
    run = push(playground)
    call = jobs_of(run)["call"]
    text = " ".join(
        alice.post(page(run, call, "cancel/"), {"version": call.version}, follow=True).content.decode().split()
    )
    assert "The job is cancelled." in text
    assert {job.conclusion for job in Job.objects.filter(parent=call)} == {"cancelled"}
    assert "(2 jobs)" in text_of(alice, page(run))  # and not the call itself too


def test_one_inner_job_is_run_again(alice: Client, playground: Playground) -> None:
    run, runner = push(playground), playground.runner()
    playground.work(runner)
    run.refresh_from_db()
    build = jobs_of(run)["call / build"]
    alice.post(page(run, build, "rerun/"), {"version": run.version})
    assert jobs_of(run)["call / build"].outcome == "queued"
    assert run.attempt == 2
    text = text_of(alice, page(run))
    assert text.count('<li class="indent-1">') == 2


def test_a_failed_inner_job_is_told_of_once(alice: Client, playground: Playground) -> None:
    run = push(playground)
    playground.work(playground.runner(), {"call / build": "failure"})
    text = text_of(alice, page(run))
    failed = text[text.index("Failed jobs") : text.index("Events and details")]
    assert ">call / build</a>" in failed
    assert ">call</a>" not in failed


def test_the_page_of_a_call_follows_its_jobs(alice: Client, playground: Playground) -> None:
    run = push(playground)
    call = jobs_of(run)["call"]
    assert f"status/?seen={_seen(alice, run, call)}&amp;job={call.pk}" in text_of(alice, page(run, call))
    unchanged = text_of(alice, page(run, None, f"status/?seen={_seen(alice, run, call)}&job={call.pk}"))
    assert "innerHTML:#call" not in unchanged
    seen = _seen(alice, run, call)
    playground.assigned(playground.runner()).begin().complete()
    text = text_of(alice, page(run, None, f"status/?seen={seen}&job={call.pk}"))
    assert 'hx-swap-oob="innerHTML:#call"' in text
    assert "Its jobs" in text
    assert "innerHTML:#summary" not in text


def _seen(client: Client, run: Run, call: Job) -> str:
    return text_of(client, page(run, call)).partition("status/?seen=")[2].partition("&")[0]


def test_a_workflow_of_another_repository_is_linked_there(alice: Client, playground: Playground) -> None:
    other = playground.make_repository(name="shared")
    inner = ".github/workflows/inner.yml"
    playground.push(
        {
            CALLED: "on: workflow_call\njobs: {deep: {uses: ./.github/workflows/inner.yml}}\n",
            inner: "on: workflow_call\njobs: {build: {runs-on: linux, steps: [{run: echo}]}}\n",
        },
        repository=other,
    )
    run = push(playground, {WORKFLOW: f"on: push\njobs: {{call: {{uses: alice/shared/{CALLED}@main}}}}\n"})
    jobs = jobs_of(run)
    assert f'href="/alice/shared/blob/main/{CALLED}"' in text_of(alice, page(run, jobs["call"]))
    assert f'href="/alice/shared/blob/main/{inner}"' in text_of(alice, page(run, jobs["call / deep"]))
    assert text_of(alice, page(run)).count('<li class="indent-2">') == 1


@pytest.mark.parametrize("name", ["call", "call / build"])
def test_who_may_see_and_act(playground: Playground, browser: Any, name: str) -> None:
    run = push(playground)
    job = jobs_of(run)[name]
    for person, seen, done in (("mallory", 404, 404), ("carol", 200, 403)):
        client = browser(getattr(playground, person))
        assert client.get(page(run, job)).status_code == seen
        assert client.post(page(run, job, "cancel/"), {"version": job.version}).status_code == done
    assert "Cancel job" not in text_of(browser(playground.carol), page(run, job))
    assert "Cancel job" in text_of(browser(playground.bob), page(run, job))


def test_a_call_of_many_jobs_costs_as_many_queries_as_of_few(
    alice: Client, playground: Playground, django_assert_num_queries: Any
) -> None:
    numbers = ", ".join(str(number) for number in range(16))
    matrix = f"strategy: {{matrix: {{a: [{numbers}], b: [{numbers}]}}}}"
    wide = CALLEE.replace("runs-on: linux, outputs", f"{matrix}, runs-on: linux, outputs")
    run = push(playground, {WORKFLOW: CALLER, CALLED: wide})
    assert run.jobs.count() == 260
    with django_assert_num_queries(9):
        assert text_of(alice, page(run)).count('<li class="indent-1">') == 257
    address = page(run, Job.objects.get(run=run, key="call"))
    with django_assert_num_queries(6):
        response = alice.get(address)
    assert response.content.decode().count('<th scope="row"') == 257


def test_a_call_carried_to_the_next_attempt_keeps_its_jobs(alice: Client, playground: Playground) -> None:
    run = push(playground)
    playground.work(playground.runner(), {"lint": "failure"})
    transitions.rerun(run_id=run.pk, actor=playground.alice, mode="failed")
    text = text_of(alice, page(run, jobs_of(run)["call"]))
    assert "ran in attempt 1" in text
    assert "Its jobs" in text

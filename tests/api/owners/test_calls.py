"""Does a job's JSON tell which call it belongs to, and a run's which run caused it?"""

from ci.lifecycle import tasks
from ci.models import Job, Run
from tests.playground import ONE_JOB, WORKFLOW

CALLED = ".github/workflows/called.yml"
CALLER = """
    name: Caller
    on: push
    jobs:
      call: {uses: ./.github/workflows/called.yml}
      own: {runs-on: linux, environment: production, steps: [{run: echo}]}
"""
CALLEE = "on: workflow_call\njobs: {build: {runs-on: linux, steps: [{run: echo}]}}\n"
AFTER = """
    name: After
    on: {workflow_run: {workflows: [CI], types: [completed]}}
    jobs: {a: {runs-on: linux, steps: [{run: echo}]}}
"""


def test_the_jobs_of_a_call_name_it(playground, carol, django_assert_max_num_queries):
    playground.push({WORKFLOW: CALLER, CALLED: CALLEE})
    run = Run.objects.get()
    with django_assert_max_num_queries(7):
        rows = carol.get(f"repositories/alice/widgets/runs/{run.pk}/jobs").json()["results"]
    jobs = {row["name"]: row for row in rows}
    call = jobs["call"]
    assert (call["uses"], call["parent_id"]) == ("./.github/workflows/called.yml", None)
    inner = jobs["call / build"]
    assert (inner["uses"], inner["parent_id"]) == (None, call["id"])
    assert (jobs["own"]["parent_id"], jobs["own"]["environment"]) == (None, "production")
    alone = carol.get(f"repositories/alice/widgets/jobs/{inner['id']}").json()
    assert (alone["parent_id"], alone["uses"]) == (call["id"], None)


def test_an_inner_job_and_a_call_are_cancelled(playground, bob):
    playground.push({WORKFLOW: CALLER, CALLED: CALLEE})
    call = Job.objects.get(key="call")
    assert bob.post(f"repositories/alice/widgets/jobs/{call.pk}/cancel").status_code == 204
    assert Job.objects.get(key="build").conclusion == "cancelled"
    call.refresh_from_db()
    assert call.conclusion == "cancelled"


def test_a_run_names_the_run_that_caused_it(playground, carol):
    playground.push({WORKFLOW: ONE_JOB, ".github/workflows/after.yml": AFTER})
    playground.work(playground.runner())
    source = Run.objects.get(event="push")
    tasks.fire_workflow_run(source.pk, 1, "completed")
    caused = Run.objects.get(event="workflow_run")
    assert carol.get(f"repositories/alice/widgets/runs/{caused.pk}").json()["source_run_id"] == source.pk
    assert carol.get(f"repositories/alice/widgets/runs/{source.pk}").json()["source_run_id"] is None

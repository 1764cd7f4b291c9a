"""Does a runner get a task, in time, once, and again when the answer was lost?"""

import threading

import pytest
import yaml

from ci.interop.runner_service.fetch_task import waiting_seconds
from ci.lifecycle import registration, transitions
from ci.models import Job, JobState, Scope
from tests.api.polls import AT_ONCE, looked
from tests.api.server import Server, until
from tests.interop.foreign import SUCCESS, code_of, job_of, registered, step
from tests.lifecycle.test_deadlines import let_pass

pytestmark = pytest.mark.django_db(transaction=True)

ONE_AFTER_THE_OTHER = """
    on: push
    jobs:
      first: {runs-on: early, steps: [{run: echo}]}
      second: {runs-on: late, needs: first, steps: [{run: echo}]}
"""


def in_background(call):
    """Begins the call, returns what waits for its result."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()

    def result():
        thread.join(AT_ONCE)
        assert found, "no answer came"
        return found[0]

    return result


@pytest.mark.parametrize("json", [False, True], ids=["protobuf", "json"])
def test_it_gets_a_queued_job_as_a_task(world, forge, json):
    runner = registered(world, forge.url, json=json)
    run = world.run()
    task = runner.task()
    job = job_of(task)
    assert (job.run, job.state, job.runner) == (run, JobState.ASSIGNED, runner.row)
    assert task.id == job.pk * 10**6 + 1
    assert task.context["run_id"] == str(run.pk)
    assert list(yaml.safe_load(task.workflow_payload)["jobs"]) == ["build"]


def test_nothing_to_do_is_answered_with_a_valid_version(world, forge):
    runner = registered(world, forge.url)
    answer = runner.client("FetchTask")
    assert not answer.HasField("task")
    assert answer.tasks_version == 1
    assert runner.client("FetchTask", tasks_version=7).tasks_version == 7


@pytest.mark.parametrize(("given", "most"), [(None, 2.5), (5.0, 2.5), (3.0, 1.0), (1.5, 0.0)])
def test_it_waits_no_longer_than_its_own_deadline_allows(given, most):
    assert min(most, 2.0) <= waiting_seconds(given) <= most


@pytest.fixture
def unswept(world, tmp_path):
    """A server that looks for missed jobs of itself only after an hour: who gets one was woken for it."""
    with Server(tmp_path / "log", FORGE_SWEEP_SECONDS="3600") as server:
        yield server


def test_a_job_that_is_queued_meanwhile_wakes_it(world, unswept):
    runner, other = registered(world, unswept.url, "late"), world.runner("early", name="other")
    for _ in range(5):  # the wait is short: on a busy machine it may be over before the job is queued
        run = world.run(ONE_AFTER_THE_OTHER)
        first = world.assigned(other).begin()
        seen = looked(runner.row)
        fetched = in_background(lambda: [runner.fetch()])
        until(seen, what="the first look")
        first.complete()
        [task] = fetched()
        if task is not None:
            break
        transitions.cancel_run(run_id=run.pk, actor=world.alice)
    assert task is not None
    assert job_of(task).run == run


def test_a_version_that_is_current_is_no_reason_not_to_look(world, forge):
    runner = registered(world, forge.url)
    world.run()
    assert runner.fetch(version=10**9) is not None


def test_labels_and_scope_say_what_it_may_take(world, forge):
    other = world.make_repository(name="other")
    elsewhere = registered(world, forge.url, "linux", scope=Scope(repository=other))
    unfit = registered(world, forge.url, "windows")
    fitting = registered(world, forge.url, "linux", "LARGE", "gpu")
    world.run("on: push\njobs:\n  a:\n    runs-on: [large, Linux]\n    steps:\n      - run: echo\n")
    assert elsewhere.fetch() is None
    assert unfit.fetch() is None
    assert fitting.fetch() is not None


def test_a_repeat_with_the_same_key_gets_the_same_task_and_a_working_token(world, forge):
    runner = registered(world, forge.url)
    world.run()
    world.run()
    first, again = runner.task(key="key-1"), runner.task(key="key-1")
    assert again.id == first.id
    assert again.secrets["GITHUB_TOKEN"] != first.secrets["GITHUB_TOKEN"]
    transitions.heartbeat(job_id=job_of(again).pk, token=again.secrets["GITHUB_TOKEN"])
    assert runner.fetch(key="key-1") is None  # acknowledged: there is nothing to repeat


@pytest.mark.parametrize("key", ["x" * 65, "with blank"])
def test_a_key_that_cannot_be_kept_is_refused(world, forge, key):
    runner = registered(world, forge.url)
    world.run()
    assert code_of(runner.fetch, key=key) == "invalid_argument"
    assert Job.objects.get().state == JobState.QUEUED


def test_without_a_key_a_lost_answer_is_made_good_by_the_lease(world, forge):
    runner = registered(world, forge.url)
    world.run()
    lost = runner.task()
    assert runner.fetch() is None  # it may be at work
    let_pass(job_of(lost).pk)
    transitions.act_on_deadline(job_id=job_of(lost).pk)
    task = runner.task()
    assert task.id == lost.id + 1
    assert job_of(task).assignment == 2


def test_one_task_at_a_time_whatever_capacity_it_speaks_of(world, forge):
    runner = registered(world, forge.url)
    world.run()
    world.run()
    answer = runner.client("FetchTask", task_capacity=5)
    assert answer.HasField("task")
    assert not answer.additional_tasks
    runner.state(answer.task)
    assert runner.fetch() is None


def test_a_single_task_is_fetched_alike(world, forge):
    runner = registered(world, forge.url)
    world.run()
    answer = runner.client("FetchSingleTask", headers={"x-runner-request-key": "one"})
    assert answer.tasks_version == 1
    again = runner.client("FetchSingleTask", headers={"x-runner-request-key": "one"})
    assert again.task.id == answer.task.id
    assert job_of(answer.task).state == JobState.ASSIGNED


def test_a_handle_names_no_job_here(world, forge):
    runner = registered(world, forge.url)
    world.run()
    assert code_of(runner.client, "FetchSingleTask", handle="x") == "invalid_argument"
    assert Job.objects.get().state == JobState.QUEUED


def test_a_job_that_cannot_be_made_a_task_ends_and_the_next_is_given(world, forge):
    runner = registered(world, forge.url)
    broken, fit = world.run(), world.run()
    Job.objects.filter(run=broken).update(definition={"runs-on": "linux", "steps": [{"name": "x", "parallel": []}]})
    assert job_of(runner.task()).run == fit
    job = Job.objects.get(run=broken)
    assert job.conclusion == "failure"
    assert "Step 1 has neither run nor uses" in job.end_note


def test_a_paused_runner_gets_nothing(world, forge):
    runner = registered(world, forge.url)
    world.run()
    registration.pause_runner(runner_id=runner.row.pk, paused=True, actor=world.operator)
    assert runner.fetch() is None


def test_a_single_use_runner_keeps_its_credentials_until_its_log_is_closed(world, forge):
    runner = registered(world, forge.url, ephemeral=True)
    world.run()
    world.run()
    task = runner.task()
    assert runner.row.ephemeral
    runner.log(task, "a line")
    runner.state(task, result=SUCCESS, steps=[step(0, first=1, count=0, result=SUCCESS)])
    assert runner.row.phase == "succeeded"
    assert runner.fetch() is None  # its one job was had
    assert runner.log(task, "the last", index=1) == 2
    assert runner.log(task, index=2, no_more=True) == 2
    assert code_of(runner.fetch) == "unauthenticated"
    # The answer to its last calls may have been lost.
    assert runner.state(task, result=SUCCESS).state.result == SUCCESS
    assert runner.log(task, index=2, no_more=True) == 2

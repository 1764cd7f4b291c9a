"""What becomes of a runner's reports: steps, outputs, the end; and how does it hear of a cancel?"""

from datetime import UTC, datetime

import pytest

from ci.interop.runner_service import update_task
from ci.lifecycle import transitions
from ci.models import Heartbeat, Job, JobState
from tests.interop.foreign import (
    CANCELLED,
    FAILURE,
    SKIPPED,
    START,
    SUCCESS,
    code_of,
    job_of,
    registered,
    step,
)
from tests.lifecycle.test_deadlines import let_pass

pytestmark = pytest.mark.django_db(transaction=True)

TWO_STEPS = """
    on: push
    jobs:
      build:
        runs-on: linux
        steps:
          - uses: actions/checkout@v4
          - name: Say it
            run: |
              echo one
              echo two
"""


@pytest.fixture
def runner(world, forge):
    return registered(world, forge.url)


@pytest.fixture
def task(world, runner):
    world.run(TWO_STEPS)
    return runner.task()


def rows(task):
    return [
        (one.number, one.name, one.outcome, one.first_line, one.line_count)
        for one in job_of(task).steps.order_by("number")
    ]


def test_the_first_report_acknowledges_and_a_running_job_has_no_result(runner, task):
    answer = runner.state(task)
    assert (answer.state.id, answer.state.result) == (task.id, 0)
    job = job_of(task)
    assert (job.state, job.poll_id) == (JobState.RUNNING, "")
    assert runner.row.phase == "running"


def test_every_report_is_a_heartbeat(runner, task):
    runner.state(task)
    Heartbeat.objects.update(at=datetime(2020, 1, 1, tzinfo=UTC))
    runner.state(task)
    assert Heartbeat.objects.get().at.year > 2020


def test_steps_stand_between_set_up_and_completion_with_their_lines(runner, task):
    runner.log(task, *(f"line {number}" for number in range(10)))
    runner.state(task, steps=[step(0, first=0, count=0), step(1, began=False)])
    assert rows(task)[1:] == [
        (2, "Run actions/checkout@v4", "running", 10, 0),
        (3, "Say it", "pending", 0, 0),
    ]
    steps = [step(0, first=2, count=3, result=SUCCESS), step(1, first=5, count=4, result=SUCCESS)]
    runner.state(task, result=SUCCESS, steps=steps)
    assert rows(task)[1:] == [
        (2, "Run actions/checkout@v4", "success", 2, 3),
        (3, "Say it", "success", 5, 4),
        (4, "Complete job", "success", 9, 1),
    ]
    second = job_of(task).steps.get(number=3)
    assert second.started_at == datetime.fromtimestamp(START + 2, UTC)
    assert second.ended_at == datetime.fromtimestamp(START + 3, UTC)


def test_a_name_is_evaluated_as_far_as_the_server_knows(world, runner):
    world.run(
        """
        on: push
        jobs:
          build:
            runs-on: linux
            strategy: {matrix: {os: [bsd]}}
            steps:
              - name: On ${{ matrix.os }}
                run: echo
              - run: echo ${{ github.ref_name }}
              - run: echo ${{ secrets.KEY }} ${{ matrix.os }}
        """
    )
    task = runner.task()
    runner.state(task, steps=[step(number, began=False) for number in range(3)])
    runner.state(task, steps=[step(0), step(1, began=False), step(2, began=False)])
    names = [one.name for one in job_of(task).steps.order_by("number")]
    assert names[1:] == ["On bsd", "Run echo main", "Run echo ${{ secrets.KEY }} ${{ matrix.os }}"]


def test_the_set_up_ends_where_the_first_step_begins(runner, task):
    runner.state(task, steps=[step(0, began=False), step(1, began=False)])
    assert rows(task)[0] == (1, "Set up job", "running", 0, 0)
    runner.log(task, "a", "b", "c")
    runner.state(task, steps=[step(0, first=2, count=1), step(1, began=False)])
    assert rows(task)[0] == (1, "Set up job", "success", 0, 2)


def test_lines_after_the_end_belong_to_the_completion(runner, task):
    runner.log(task, "a", "b")
    steps = [step(0, first=0, count=1, result=SUCCESS), step(1, first=1, count=1, result=SUCCESS)]
    runner.state(task, result=SUCCESS, steps=steps)
    runner.log(task, "c", "d", index=2, no_more=True)
    assert rows(task)[-1] == (4, "Complete job", "success", 2, 2)


def test_a_finished_step_does_not_change_again(runner, task):
    runner.state(task, steps=[step(0, first=0, count=1, result=FAILURE)])
    runner.state(task, steps=[step(0, first=5, count=9, result=SUCCESS)])
    assert rows(task)[1] == (2, "Run actions/checkout@v4", "failure", 0, 1)


def test_steps_that_are_not_in_the_job_are_left_aside(runner, task):
    runner.state(task, steps=[step(-1), step(2), step(10**12), step(1, first=-3, count=2**40)])
    assert [row[0] for row in rows(task)] == [1, 3]


@pytest.mark.parametrize(
    ("result", "conclusion"),
    [(SUCCESS, "success"), (FAILURE, "failure"), (CANCELLED, "cancelled"), (SKIPPED, "skipped")],
)
def test_a_result_ends_the_job(runner, task, result, conclusion):
    answer = runner.state(task, result=result)
    assert answer.state.result == result
    job = job_of(task)
    assert (job.state, job.conclusion, job.run.state) == (JobState.ENDED, conclusion, "ended")
    assert runner.row.phase == "pending"


def test_a_result_of_the_set_up_alone_is_its_failure(runner, task):
    runner.log(task, "no such image")
    runner.state(task, result=FAILURE, steps=[step(0, began=False), step(1, began=False)])
    assert rows(task)[0] == (1, "Set up job", "failure", 0, 1)
    assert [row[2] for row in rows(task)[1:3]] == ["skipped", "skipped"]


def test_the_end_can_be_told_again_and_stays(runner, task):
    runner.state(task, result=FAILURE)
    version = job_of(task).version
    assert runner.state(task, result=SUCCESS).state.result == FAILURE
    assert runner.state(task).state.result == FAILURE
    assert job_of(task).version == version


def test_outputs_are_kept_with_the_end_and_their_names_told_each_time(runner, task):
    assert not runner.state(task, outputs={"early": "x"}).sent_outputs
    answer = runner.state(task, result=SUCCESS, outputs={"early": "x", "late": "y" * 1024 * 1024})
    assert list(answer.sent_outputs) == ["early", "late"]
    assert list(runner.state(task, result=SUCCESS).sent_outputs) == ["early", "late"]
    assert set(job_of(task).outputs) == {"early", "late"}


def test_an_output_that_cannot_be_kept_does_not_keep_the_job_from_ending(runner, task):
    given = {"ok": "x", "k" * 256: "x", "large": "x" * (1024 * 1024 + 1), "nul": "a\0b"}
    answer = runner.state(task, result=SUCCESS, outputs=given)
    assert list(answer.sent_outputs) == ["ok"]
    assert job_of(task).outputs == {"ok": "x"}
    [annotation] = job_of(task).steps.get(name="Complete job").annotations
    assert "large" in annotation["message"]


def test_outputs_are_bounded_in_number_and_together():
    many = {f"name-{number:03d}": "x" for number in range(101)}
    kept, left_out = update_task._sorted_out(many)
    assert (len(kept), left_out) == (100, ["name-100"])
    large = {f"name-{number:02d}": "x" * 1024 * 1024 for number in range(17)}
    kept, left_out = update_task._sorted_out(large)
    assert (len(kept), left_out) == (16, ["name-16"])


def test_a_cancel_is_told_until_the_runner_has_ended_its_post_steps(world, runner, task):
    runner.state(task, steps=[step(0)])
    transitions.cancel_run(run_id=job_of(task).run_id, actor=world.alice)
    assert runner.state(task, steps=[step(0, count=1, result=CANCELLED)]).state.result == CANCELLED
    assert runner.state(task).state.result == CANCELLED
    assert job_of(task).state == JobState.RUNNING
    token = task.secrets["FORGEJO_TOKEN"]  # the post steps have it still
    transitions.heartbeat(job_id=job_of(task).pk, token=token)
    assert runner.state(task, result=SUCCESS).state.result == CANCELLED
    job = job_of(task)
    assert (job.conclusion, job.cancel_reason) == ("cancelled", "owner")


def test_a_job_that_was_ended_by_force_tells_its_end(world, runner, task):
    runner.state(task)
    transitions.cancel_job(job_id=job_of(task).pk, actor=world.alice, force=True)
    assert runner.state(task).state.result == CANCELLED
    assert runner.state(task, result=SUCCESS, outputs={"a": "b"}).sent_outputs == []
    assert job_of(task).outputs == {}


def test_a_task_that_was_taken_back_is_over_for_whoever_had_it(world, runner, task, forge):
    job = job_of(task)
    let_pass(job.pk)
    transitions.act_on_deadline(job_id=job.pk)
    assert runner.state(task, steps=[step(0)]).state.result == CANCELLED
    other = registered(world, forge.url, name="other")
    newer = other.task()
    assert runner.state(task, result=SUCCESS, outputs={"a": "b"}).state.result == CANCELLED
    job.refresh_from_db()
    assert (job.state, job.assignment, job.outputs) == (JobState.ASSIGNED, 2, {})
    assert not job.steps.exists()
    assert other.state(newer).state.result == 0


def test_a_task_of_another_runner_is_refused(world, task, forge):
    other = registered(world, forge.url, name="other")
    assert code_of(other.state, task, result=SUCCESS) == "internal"
    assert code_of(other.log, task, "x") == "internal"
    assert job_of(task).state == JobState.ASSIGNED


@pytest.mark.parametrize("task_id", [0, -1, 5, 10**6, 10**12 + 1, 2**63 - 1])
def test_a_task_that_never_was_is_not_found(runner, task, task_id):
    task.id = task_id
    assert code_of(runner.state, task) == "not_found"
    assert code_of(runner.log, task, "x") == "not_found"


def test_an_assignment_that_is_yet_to_come_is_not_found(runner, task):
    task.id += 1
    assert code_of(runner.state, task, result=SUCCESS) == "not_found"


def test_a_task_whose_run_was_deleted_is_not_found(runner, task):
    run = job_of(task).run
    Job.objects.filter(run=run).delete()
    assert code_of(runner.state, task) == "not_found"
    assert code_of(runner.log, task, "x") == "not_found"

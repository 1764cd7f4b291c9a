"""Does each line of a runner come into the log once, in order, and no other line?"""

import tracemalloc

import pytest

from ci.interop.protocol import runner_pb2
from ci.interop.runner_service import update_log
from ci.lifecycle import sweeps, transitions
from ci.models import JobState, Log
from ci.storage import logs
from tests.interop.foreign import CANCELLED, SUCCESS, code_of, job_of, registered, row, step
from tests.lifecycle.test_deadlines import let_pass

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def runner(world, forge):
    return registered(world, forge.url)


@pytest.fixture
def task(world, runner):
    world.run()
    return runner.task()


def texts(task):
    return [line.text for line in logs.lines(job_of(task).pk, 0, 10_000)]


def test_the_first_lines_acknowledge(runner, task):
    assert runner.log(task, "a", "b") == 2
    assert job_of(task).state == JobState.RUNNING
    [first, _] = logs.lines(job_of(task).pk, 0, 2)
    assert first.time == "2026-05-28T20:26:40Z"


def test_an_empty_batch_acknowledges_too(runner, task):
    assert runner.log(task) == 0
    assert job_of(task).state == JobState.RUNNING


def test_repeats_are_skipped_and_the_rest_is_kept(runner, task):
    assert runner.log(task, "a", "b") == 2
    assert runner.log(task, "a", "b") == 2
    assert runner.log(task, "b", "c", index=1) == 3
    assert texts(task) == ["a", "b", "c"]


def test_a_hole_is_answered_with_where_the_log_stands(runner, task):
    runner.log(task, "a")
    assert runner.log(task, "c", index=2) == 1
    assert runner.log(task, "c", index=2**62) == 1
    assert texts(task) == ["a"]


def test_never_more_is_acknowledged_than_was_sent(runner, task):
    runner.log(task, "a", "b", "c")
    assert runner.log(task, "a") == 1
    assert runner.log(task, index=2) == 2
    assert runner.log(task, index=3) == 3
    assert runner.log(task, index=9) == 3


def test_a_negative_index_is_refused(runner, task):
    assert code_of(runner.log, task, "a", index=-1) == "invalid_argument"


def test_lines_are_taken_after_the_end_until_the_log_is_closed(runner, task):
    runner.log(task, "a")
    runner.state(task, result=SUCCESS)
    assert runner.log(task, "b", index=1) == 2
    assert runner.log(task, "c", index=2, no_more=True) == 3
    assert logs.is_sealed(job_of(task).pk)
    assert runner.log(task, "c", index=2, no_more=True) == 3
    assert runner.log(task, index=3, no_more=True) == 3
    assert code_of(runner.log, task, "d", index=3) == "already_exists"
    assert texts(task) == ["a", "b", "c"]


def test_no_more_without_lines_closes_too(runner, task):
    runner.log(task, "a")
    runner.state(task, result=SUCCESS)
    assert runner.log(task, index=1, no_more=True) == 1
    assert code_of(runner.log, task, "b", index=1) == "already_exists"


def test_no_more_does_not_close_a_log_over_a_hole(runner, task):
    runner.log(task, "a")
    assert runner.log(task, "c", index=2, no_more=True) == 1
    assert runner.log(task, index=2, no_more=True) == 1
    assert runner.log(task, "b", "c", index=1, no_more=True) == 3
    assert texts(task) == ["a", "b", "c"]
    assert code_of(runner.log, task, "d", index=3) == "already_exists"


def test_a_log_that_is_closed_before_the_end_is_merged_after_it(world, runner, task):
    """As Gitea's runners do: the log first, then the state."""
    assert runner.log(task, "a", "b", no_more=True) == 2
    assert code_of(runner.log, task, "c", index=2) == "already_exists"
    runner.state(task, result=SUCCESS, steps=[step(0, first=1, count=1, result=SUCCESS)])
    job = job_of(task)
    assert (job.state, job.conclusion) == (JobState.ENDED, "success")
    logs.merge(job.pk)
    assert Log.objects.get(pk=job.pk).blob
    assert texts(task) == ["a", "b"]


def test_a_log_that_nobody_closes_is_closed_by_the_sweep(runner, task):
    runner.log(task, "a")
    runner.state(task, result=SUCCESS)
    sweeps.seal_log(job_of(task).pk)
    assert code_of(runner.log, task, "b", index=1) == "already_exists"


def test_the_lines_of_a_later_assignment_come_below_those_of_the_first(world, runner, task, forge):
    runner.log(task, "first", no_more=True)
    job = job_of(task)
    transitions.requeue_job(job_id=job.pk, actor=world.operator)
    other = registered(world, forge.url, name="other")
    newer = other.task()
    assert other.log(newer, "second", "third") == 2
    assert other.log(newer, "third", "fourth", index=1) == 3
    assert texts(task) == ["first", "second", "third", "fourth"]
    other.state(newer, result=SUCCESS, steps=[step(0, first=1, count=2, result=SUCCESS)])
    other.log(newer, index=3, no_more=True)
    ranges = [(one.name, one.first_line, one.line_count) for one in job.steps.order_by("number")]
    assert ranges == [("Set up job", 1, 1), ("Run echo hello", 2, 2), ("Complete job", 4, 0)]


def test_a_task_that_was_taken_back_gets_no_lines(world, runner, task, forge):
    runner.log(task, "first")
    job = job_of(task)
    transitions.requeue_job(job_id=job.pk, actor=world.operator)
    assert code_of(runner.log, task, "late", index=1) == "aborted"
    newer = registered(world, forge.url, name="other").task()
    assert code_of(runner.log, task, "late", index=1) == "aborted"
    assert code_of(runner.log, task, no_more=True, index=1) == "aborted"
    assert texts(newer) == ["first"]
    assert not logs.is_sealed(job.pk)


def test_an_unacknowledged_task_that_was_taken_back_is_not_acknowledged_by_its_lines(runner, task):
    job = job_of(task)
    let_pass(job.pk)
    transitions.act_on_deadline(job_id=job.pk)
    assert code_of(runner.log, task, "late") == "aborted"
    job.refresh_from_db()
    assert (job.state, logs.length(job.pk)) == (JobState.QUEUED, 0)


def test_at_the_log_limit_the_job_is_stopped_and_the_rest_is_dropped(world, runner, task, settings):
    """In this process, whose limit can be set: the two calls as the server makes them."""
    settings.LOG_LIMIT_LINES = 3
    rows = [row(text) for text in "abcde"]
    request = runner_pb2.UpdateLogRequest(task_id=task.id, rows=rows)
    assert update_log._update(runner.row, request).ack_index == 5
    request = runner_pb2.UpdateLogRequest(task_id=task.id, index=5, rows=rows, no_more=True)
    assert update_log._update(runner.row, request).ack_index == 10
    assert texts(task) == ["a", "b", "c"]
    assert job_of(task).cancel_reason == "log_limit"
    assert runner.state(task).state.result == CANCELLED


def test_a_large_batch_comes_through_whole(runner, task):
    lines = [f"line {number:06d} " + "x" * 80 for number in range(30_000)]
    assert runner.log(task, *lines) == 30_000
    assert [line.text for line in logs.lines(job_of(task).pk, 29_998, 10)] == lines[-2:]


def test_odd_lines_are_kept_as_lines(runner, task):
    odd = ["nul \0 here", "two\nlines", "tab\there", "", "é" * 40_000]
    assert runner.log(task, *odd) == 5
    found = texts(task)
    assert len(found) == 5
    assert found[2:4] == ["tab\there", ""]
    assert found[4].startswith("é" * 1000)


def test_a_time_that_no_calendar_has_does_not_lose_the_line(runner, task):
    odd = row("a")
    odd.time.seconds = 2**62
    answer = runner.client("UpdateLog", task_id=task.id, rows=[odd])
    assert answer.ack_index == 1
    assert texts(task) == ["a"]


def test_the_lines_of_a_large_batch_are_not_held_twice(runner, task, monkeypatch):
    monkeypatch.setattr(update_log, "append_log", lambda *, offset, lines, **_: offset + len(lines))
    request = runner_pb2.UpdateLogRequest.FromString(b"\x1a\0" * 200_000)
    tracemalloc.start()
    try:
        assert update_log._append(job_of(task).pk, None, 0, 0, request) == 200_000
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()

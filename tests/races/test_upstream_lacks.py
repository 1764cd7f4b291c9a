"""The races that actions-runner-controller has no test for, by what they are about.

Of the list of twelve: a mark to go between read and write; another job's start; a start after the end; a claim against
the scale-down, against an end of the process and against the admin's cancel; conflicts without end; a heartbeat against
the job's end; an old token at every call that writes; a bulk update past the version. That each of these fails without
its guard is shown by `python -m tests.mutation`. Two more are about the reconciling of a set, and come with it: two
tasks of one set at once, and one that is killed between making a runner, launching it and noting its process.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection
from django.urls import get_resolver

from ci.lifecycle import transitions
from ci.lifecycle.errors import Conflict, JobEnded, LogLimit, NotFound
from ci.models import Event, Heartbeat, Job, Log, Run, Runner, RunnerPhase
from tests.api.calls import JOB_CALLS, call, error_of, snapshot
from tests.lifecycle.test_deadlines import let_pass
from tests.playground import Assigned, Playground
from tests.races.interleaving import LOCK_RUN, LOCK_RUNNER, TAKE_JOB, WRITE_HEARTBEAT, WRITE_PHASE, rival_before

NOTE_JOB = r'UPDATE "ci_runner" SET "used_job_id"'
# A log line takes its job's lock only.
LOCK_RUN_OR_JOB = r'FROM "ci_(run|job)" .*FOR NO KEY UPDATE'
ROUNDS = 20


def retire(runner: Runner) -> bool:
    return transitions.retire_runner(runner_id=runner.pk, reason="Too many idle.")


def seen(runner: Runner) -> tuple[str, int | None]:
    runner.refresh_from_db()
    return runner.phase, runner.used_job_id


def test_a_mark_to_go_between_read_and_write_wins(committing_playground: Playground) -> None:
    runner = committing_playground.runner(ephemeral=True)
    with rival_before(WRITE_PHASE, lambda: retire(runner)) as rival:
        transitions.start_runner(runner_id=runner.pk, job_id=7, job_name="build")
    assert rival.result is True
    assert seen(runner) == ("succeeded", 7), "the details are kept, and it does not come back"


def test_a_runner_is_not_marked_to_go_while_it_acknowledges(committing_playground: Playground) -> None:
    committing_playground.run()
    runner = committing_playground.runner(ephemeral=True)
    assigned = committing_playground.assigned(runner)
    with rival_before(WRITE_PHASE, lambda: retire(runner)) as rival:
        assigned.heartbeat()
    assert (rival.result, rival.error) == (False, None)
    assert seen(runner) == ("running", assigned.id)


def test_the_start_of_another_job_at_the_same_time_does_not_overwrite_the_first(
    committing_playground: Playground,
) -> None:
    runner = committing_playground.runner(ephemeral=True)
    other = lambda: transitions.start_runner(runner_id=runner.pk, job_id=8, job_name="other")  # noqa: E731
    with rival_before(NOTE_JOB, other):
        transitions.start_runner(runner_id=runner.pk, job_id=7, job_name="build")
    runner.refresh_from_db()
    assert (runner.used_job_id, runner.used_job_name) == (8, "other")


@pytest.mark.parametrize("ephemeral", [False, True])
def test_a_start_that_arrives_after_the_end_changes_nothing(committing_playground: Playground, ephemeral: bool) -> None:
    """Row 45: started after completed."""
    committing_playground.run()
    runner = committing_playground.runner(ephemeral=ephemeral)
    assigned = committing_playground.assigned(runner)

    def start_and_end() -> None:
        assigned.heartbeat()
        assigned.complete()

    with rival_before(LOCK_RUN, start_and_end) as rival, pytest.raises(JobEnded):
        assigned.heartbeat()
    assert rival.error is None
    assert seen(runner)[0] == ("succeeded" if ephemeral else "pending")


def test_a_claim_that_comes_after_the_scale_down_gets_nothing(committing_playground: Playground) -> None:
    committing_playground.run()
    runner = committing_playground.runner(ephemeral=True)
    with rival_before(LOCK_RUNNER, lambda: retire(runner)) as rival:
        assert committing_playground.fetch(runner) is None
    assert rival.result is True
    assert Job.objects.get().state == "queued"


@pytest.mark.parametrize("point", [LOCK_RUNNER, TAKE_JOB])
def test_a_scale_down_that_meets_a_claim_lets_one_of_them_win(committing_playground: Playground, point: str) -> None:
    committing_playground.run()
    runner = committing_playground.runner(ephemeral=True)
    with rival_before(point, lambda: retire(runner)) as rival:
        assigned = committing_playground.fetch(runner)
    assert rival.error is None
    assert rival.result is (assigned is None)
    # Once the claim has locked the row, the scale-down can only wait for it.
    assert (rival.waited_in != "") == (point == TAKE_JOB)


def test_a_scale_down_that_comes_after_the_claim_leaves_the_runner(committing_playground: Playground) -> None:
    committing_playground.run()
    runner = committing_playground.runner(ephemeral=True)
    with rival_before(LOCK_RUNNER, lambda: committing_playground.assigned(runner)) as rival:
        assert retire(runner) is False
    assert seen(runner) == ("pending", rival.result.id)
    rival.result.heartbeat()
    assert seen(runner) == ("running", rival.result.id)


def test_of_claim_and_scale_down_in_two_threads_exactly_one_wins(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    for number in range(ROUNDS):
        runner = playground.runner(name=f"runner {number}", ephemeral=True)
        claimed, retired = at_once(lambda r=runner: playground.fetch(r), lambda r=runner: retire(r))
        assert (claimed is not None) != retired
        assert Job.objects.filter(runner=runner).exists() == (claimed is not None)
        assert seen(runner)[0] == ("succeeded" if retired else "pending")
        if claimed is not None:
            transitions.requeue_job(job_id=claimed.id, actor=playground.operator)


def at_once(*acts: Any) -> list[Any]:
    barrier = threading.Barrier(len(acts))
    results: list[Any] = [None] * len(acts)

    def run(index: int) -> None:
        try:
            barrier.wait(30)
            results[index] = acts[index]()
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[index]) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def outdate(runner: Runner) -> bool:
    return transitions.finish_runner(runner_id=runner.pk, phase=RunnerPhase.OUTDATED, reason="Its version is too old.")


def test_a_claim_that_comes_after_the_end_of_the_process_gets_nothing(committing_playground: Playground) -> None:
    committing_playground.run()
    runner = committing_playground.runner(ephemeral=True)
    with rival_before(LOCK_RUNNER, lambda: outdate(runner)) as rival:
        assert committing_playground.fetch(runner) is None
    assert rival.result is True
    assert Job.objects.get().state == "queued"


def test_the_job_of_a_process_that_ends_during_its_claim_goes_back_to_the_queue(
    committing_playground: Playground,
) -> None:
    playground = committing_playground
    playground.run()
    runner = playground.runner(ephemeral=True)
    with rival_before(TAKE_JOB, lambda: outdate(runner)) as rival:
        assigned = playground.assigned(runner)
    assert (rival.result, rival.error) == (True, None)
    assert rival.waited_in
    assert seen(runner) == ("outdated", assigned.id)
    let_pass(assigned.id)
    transitions.act_on_deadline(job_id=assigned.id)
    assert playground.assigned(playground.runner(name="beta")).id == assigned.id
    assert seen(runner)[0] == "outdated"


def test_an_admin_who_cancels_the_row_he_saw_is_told_of_a_claim_in_between(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    job = Job.objects.get()
    cancel: dict[str, Any] = {"job_id": job.pk, "actor": playground.operator, "version": job.version}
    with rival_before(LOCK_RUN, lambda: playground.assigned()) as rival, pytest.raises(Conflict):
        transitions.cancel_job(**cancel)
    job.refresh_from_db()
    assert (job.state, job.cancel_reason) == ("assigned", "")
    assert rival.result.heartbeat().cancel is None


def test_conflicts_without_end_lose_nothing(playground: Playground) -> None:
    playground.run()
    runner = playground.runner(ephemeral=True)
    assigned = playground.assigned(runner, poll_id="poll")

    def lose_every_race(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "UPDATE" in sql and '"phase" = ' in sql:
            execute("UPDATE ci_runner SET version = version + 1 WHERE id = %s", [runner.pk], False, context)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(lose_every_race), pytest.raises(Conflict):
        assigned.heartbeat()
    # As if it had never been sent: not acknowledged, so the poll may still be repeated, and a heartbeat too.
    assert (assigned.job.state, assigned.job.poll_id) == ("assigned", "poll")
    assert not Heartbeat.objects.exists()
    again = playground.assigned(runner, poll_id="poll")
    again.heartbeat()
    assert again.job.state == "running"
    assert seen(runner) == ("running", again.id)
    assert Event.objects.filter(kind="acknowledged").count() == 1


@pytest.mark.parametrize("end", ["complete", "force"])
def test_a_heartbeat_is_never_recorded_for_a_job_that_ended_before_it(
    committing_playground: Playground, end: str
) -> None:
    playground = committing_playground
    run = playground.run()
    assigned = playground.assigned().begin()
    before = Heartbeat.objects.get(job=assigned.id).at

    def ends() -> None:
        if end == "complete":
            assigned.complete()
        else:
            transitions.cancel_run(run_id=run.pk, actor=playground.alice, force=True)

    with rival_before(LOCK_RUN, ends) as rival, pytest.raises(JobEnded):
        assigned.heartbeat()
    assert rival.error is None
    assert Heartbeat.objects.get(job=assigned.id).at == before


def test_a_job_that_ends_during_a_heartbeat_waits_for_it(committing_playground: Playground) -> None:
    playground = committing_playground
    playground.run()
    assigned = playground.assigned().begin()
    with rival_before(WRITE_HEARTBEAT, assigned.complete) as rival:
        assigned.heartbeat()
    assert rival.error is None
    assert 'FROM "ci_run"' in rival.waited_in
    job = assigned.job
    assert job.ended_at is not None
    assert Heartbeat.objects.get(job=job).at <= job.ended_at


def taken_back_and_given_to_another(playground: Playground) -> tuple[Assigned, Assigned]:
    """A job as its first runner believes to have it, and as the second one has it."""
    playground.run()
    earlier = playground.assigned()
    transitions.requeue_job(job_id=earlier.id, actor=playground.operator)
    return earlier, playground.assigned(playground.runner(name="beta")).begin()


@pytest.mark.parametrize(("method", "path", "body"), JOB_CALLS, ids=[path for _, path, _ in JOB_CALLS])
def test_the_token_of_who_had_the_job_before_is_refused(
    playground: Playground, method: str, path: str, body: Any
) -> None:
    earlier, now = taken_back_and_given_to_another(playground)
    before = snapshot()
    error_of(call(method, path.format(id=earlier.id), token=earlier.token, body=body), 401, "unauthenticated")
    assert snapshot() == before
    assert call(method, path.format(id=now.id), token=now.token, body=body).status_code == 200


def test_the_calls_above_are_all_that_a_job_token_opens_for_writing() -> None:
    assert get_resolver().url_patterns, "the project's own come first: they bring the converters"
    found = get_resolver("ci.api.runner.urls").url_patterns
    routes = {str(each.pattern).replace("<row_id:job_id>", "{id}") for each in found}
    assert {route for route in routes if "{id}" in route} == {path for _, path, _ in JOB_CALLS}


@pytest.mark.parametrize("name", ["heartbeat", "steps", "log", "complete"])
def test_a_job_that_vanishes_between_look_up_and_lock_is_not_found(
    committing_playground: Playground, name: str
) -> None:
    playground = committing_playground
    run = playground.run()
    assigned = playground.assigned().begin()
    act = {
        "heartbeat": assigned.heartbeat,
        "steps": assigned.steps,
        "log": lambda: assigned.log("x"),
        "complete": assigned.complete,
    }[name]
    vanish = lambda: Run.objects.filter(pk=run.pk).delete()  # noqa: E731
    with rival_before(LOCK_RUN_OR_JOB, vanish) as rival, pytest.raises(NotFound):
        act()
    assert rival.error is None
    assert not Log.objects.exists()


def test_a_job_that_vanishes_while_its_full_log_is_handled_is_not_found(
    committing_playground: Playground, settings: Any
) -> None:
    settings.LOG_LIMIT_LINES = 1
    playground = committing_playground
    run = playground.run()
    assigned = playground.assigned().begin()
    with rival_before(LOCK_RUN, lambda: Run.objects.filter(pk=run.pk).delete()) as rival, pytest.raises(NotFound):
        assigned.log("one", "two")
    assert rival.error is None


def test_a_job_that_ends_while_its_full_log_is_handled_ends_as_it_did(
    committing_playground: Playground, settings: Any
) -> None:
    settings.LOG_LIMIT_LINES = 1
    committing_playground.run()
    assigned = committing_playground.assigned().begin()
    with rival_before(LOCK_RUN, assigned.complete), pytest.raises(LogLimit):
        assigned.log("one", "two")
    assert (assigned.job.conclusion, assigned.job.cancel_reason) == ("success", "")

"""Nobody comes between what a verb has read and what it writes: whoever wants the same run, runner or set waits.

The rival comes right before the first write, when everything is decided. Without the lock it would not wait, and the
verb would write what it decided about a row that is another one by then.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from ci.lifecycle import artifact_folders, artifacts, registration, summaries, transitions
from ci.lifecycle.errors import LifecycleError, LogLimit
from ci.models import Artifact, Job, Run, Runner, RunnerSet
from tests.lifecycle.artifact_making import job_of, keep_folder, put
from tests.lifecycle.test_deadlines import fall_silent, let_pass
from tests.playground import Assigned, Playground
from tests.races.interleaving import WRITE_JOB, rival_before
from tests.scaling.world import World

FIRST_WRITE = r'^\s*(UPDATE|INSERT INTO|DELETE FROM)\s+"?ci_'
STEP = {"number": 2, "name": "x", "state": "running"}


def late(assigned: Assigned) -> Assigned:
    let_pass(assigned.id)
    return assigned


def silent(assigned: Assigned) -> Assigned:
    fall_silent(assigned.begin())
    return assigned


def over(assigned: Assigned) -> Assigned:
    assigned.begin().complete()
    return assigned


def unapproved(assigned: Assigned) -> Assigned:
    Run.objects.update(approval_pending=True)
    return assigned


def overdue(assigned: Assigned) -> Assigned:
    Run.objects.update(deadline_at=timezone.now() - timedelta(seconds=1))
    return assigned


def taken_back(assigned: Assigned) -> Assigned:
    late(assigned)
    transitions.act_on_deadline(job_id=assigned.id)
    return assigned


def opened(assigned: Assigned) -> Assigned:
    keep_folder(job_of(assigned.begin()), "a", file=b"1")
    return assigned


def fill(assigned: Assigned) -> None:
    with pytest.raises(LogLimit):
        assigned.log("one", "two")


def run_of(assigned: Assigned) -> int:
    return assigned.job.run_id


# name: what happens to a job that was just given to a runner, and what its verb does then, by a person or by nobody
OF_RUNS: dict[str, tuple[Callable[[Assigned], Assigned], Callable[[Assigned, Any], Any]]] = {
    "heartbeat": (lambda a: a, lambda a, by: a.heartbeat()),
    "update_steps": (Assigned.begin, lambda a, by: a.steps({**STEP, "name": "y"})),
    "complete": (Assigned.begin, lambda a, by: a.complete()),
    "seal_log": (Assigned.begin, lambda a, by: transitions.seal_log(job_id=a.id, token=a.token)),
    "append_log, at the limit": (Assigned.begin, lambda a, by: fill(a)),
    "act_on_deadline": (late, lambda a, by: transitions.act_on_deadline(job_id=a.id)),
    "lose_job": (silent, lambda a, by: transitions.lose_job(job_id=a.id)),
    "release_from_runner": (
        lambda a: a,
        lambda a, by: transitions.release_from_runner(job_id=a.id, runner_id=a.runner.pk, why="gone"),
    ),
    "requeue_job": (lambda a: a, lambda a, by: transitions.requeue_job(job_id=a.id, actor=by)),
    "fail_unpreparable": (taken_back, lambda a, by: transitions.fail_unpreparable(job_id=a.id, note="no such action")),
    "cancel_job": (lambda a: a, lambda a, by: transitions.cancel_job(job_id=a.id, actor=by)),
    "cancel_run": (lambda a: a, lambda a, by: transitions.cancel_run(run_id=run_of(a), actor=by)),
    "act_on_run_deadline": (overdue, lambda a, by: transitions.act_on_run_deadline(run_id=run_of(a))),
    "approve_run": (unapproved, lambda a, by: transitions.approve_run(run_id=run_of(a), actor=by)),
    "rerun": (over, lambda a, by: transitions.rerun(run_id=run_of(a), actor=by)),
    "lock_caller": (Assigned.begin, lambda a, by: artifact_folders.open_folder(job=job_of(a), name="a")),
    "close_folder": (opened, lambda a, by: artifact_folders.close_folder(job=job_of(a), name="a")),
    "put_file, anew": (opened, lambda a, by: put(job_of(a), Artifact.objects.get(), "file", b"anew")),
    "delete_artifact": (
        opened,
        lambda a, by: artifacts.delete_artifact(artifact_id=Artifact.objects.get().pk, job=job_of(a)),
    ),
    "keep_summary": (
        Assigned.begin,
        lambda a, by: summaries.keep_summary(job=job_of(a), number=2, name="x", text="# Done"),
    ),
}


@pytest.mark.parametrize("verb", OF_RUNS)
def test_who_cancels_a_run_waits_for(committing_playground: Playground, settings: Any, verb: str) -> None:
    settings.LOG_LIMIT_LINES = 1
    playground = committing_playground
    playground.run()
    prepare, act = OF_RUNS[verb]
    assigned = prepare(playground.assigned())
    run_id = run_of(assigned)
    stop = lambda: transitions.cancel_run(run_id=run_id, actor=playground.alice, force=True)  # noqa: E731
    with rival_before(WRITE_JOB if verb.startswith("append") else FIRST_WRITE, stop) as rival:
        act(assigned, playground.operator)
    assert 'FROM "ci_run"' in rival.waited_in
    assert rival.error is None or isinstance(rival.error, LifecycleError)
    assert not Job.objects.exclude(state="ended").exists()


def launching(world: World) -> int:
    world.make_set(minimum=1)
    (runner_id,) = world.decide().launch
    return runner_id


def begun(world: World) -> int:
    runner_id = launching(world)
    assert transitions.begin_launch(runner_id=runner_id)
    return runner_id


def started(world: World) -> int:
    runner_id = begun(world)
    assert transitions.launched(runner_id=runner_id, attempt=1, handle="h1")
    return runner_id


def told_to_go(world: World) -> int:
    runner_id = started(world)
    Runner.objects.filter(pk=runner_id).update(deleting_at=timezone.now())
    return runner_id


def registered(world: World) -> int:
    world.queue(1)
    return world.playground.runner(ephemeral=True).pk


OF_RUNNERS: dict[str, tuple[Callable[[World], int], Callable[[int, Any], Any]]] = {
    "begin_launch": (launching, lambda r, by: transitions.begin_launch(runner_id=r)),
    "launched": (begun, lambda r, by: transitions.launched(runner_id=r, attempt=1, handle="h1")),
    "launch_unanswered": (begun, lambda r, by: transitions.launch_unanswered(runner_id=r, attempt=1, reason="silence")),
    "launch_failed": (begun, lambda r, by: transitions.launch_failed(runner_id=r, attempt=1, reason="no room")),
    "came_up": (started, lambda r, by: transitions.came_up(runner_id=r)),
    "process_forced": (told_to_go, lambda r, by: transitions.process_forced(runner_id=r, attempt=1, again_in=5)),
    "process_ended": (started, lambda r, by: transitions.process_ended(runner_id=r, attempt=1, exit_code=1)),
    "claim": (registered, lambda r, by: transitions.claim(runner_id=r, poll_id="poll")),
    "retire_runner": (registered, lambda r, by: transitions.retire_runner(runner_id=r, reason="Too many.")),
    "pause_runner": (registered, lambda r, by: registration.pause_runner(runner_id=r, paused=True, actor=by)),
    "remove_runner": (registered, lambda r, by: registration.remove_runner(runner_id=r, actor=by)),
}


@pytest.mark.parametrize("verb", OF_RUNNERS)
def test_who_pauses_a_runner_waits_for(committing_playground: Playground, verb: str) -> None:
    operator = committing_playground.operator
    prepare, act = OF_RUNNERS[verb]
    runner_id = prepare(World(committing_playground))
    version = Runner.objects.get(pk=runner_id).version
    pause = lambda: registration.pause_runner(  # noqa: E731
        runner_id=runner_id, paused=True, actor=operator, version=version
    )
    with rival_before(FIRST_WRITE, pause) as rival:
        act(runner_id, operator)
    assert 'FROM "ci_runner"' in rival.waited_in
    # What was seen has changed meanwhile, unless only its attempt has.
    assert isinstance(rival.error, LifecycleError) or verb == "launch_unanswered"


def parked(world: World) -> int:
    runner_set = world.make_set()
    RunnerSet.objects.update(phase="outdated", parked_at=timezone.now(), version=F("version") + 1)
    return runner_set.pk


OF_SETS: dict[str, tuple[Callable[[World], int], Callable[[int, Any], Any]]] = {
    "delete_set": (lambda w: w.make_set(minimum=1).pk, lambda s, by: transitions.delete_set(set_id=s, actor=by)),
    "recover_set": (parked, lambda s, by: transitions.recover_set(set_id=s, actor=by)),
}


@pytest.mark.parametrize("verb", OF_SETS)
def test_who_scales_a_set_waits_for(committing_playground: Playground, verb: str) -> None:
    operator = committing_playground.operator
    prepare, act = OF_SETS[verb]
    set_id = prepare(World(committing_playground))
    with rival_before(FIRST_WRITE, lambda: transitions.scale_set(set_id=set_id)) as rival:
        act(set_id, operator)
    assert rival.error is None
    assert 'FROM "ci_runnerset"' in rival.waited_in
    # It has decided by what was written while it waited: a set that is deleted makes no runner and goes.
    assert rival.result.deleted == (verb == "delete_set")

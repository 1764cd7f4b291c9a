"""Which guards are there, and how is each taken away? Every row must make some test fail."""

from __future__ import annotations

from tests.mutation.artifacts import OF_ARTIFACTS
from tests.mutation.blobs import OF_BLOBS
from tests.mutation.caches import OF_CACHES
from tests.mutation.cancels import CANCELS
from tests.mutation.constraints import CONSTRAINTS
from tests.mutation.files import OF_FILES
from tests.mutation.guard import LIFE, RACES, Guard, T
from tests.mutation.locks import ROW_LOCKS, VERSION_CONDITIONS
from tests.mutation.pushes import OF_PUSHES
from tests.mutation.scaling import OF_RUNNER_SETS
from tests.mutation.states import STATES
from tests.mutation.tries import OF_TRIES
from tests.mutation.verbs import OF_VERBS

GUARDS = (
    Guard(
        "the run's lock",
        T + "guard.py",
        "Run.objects.select_for_update(no_key=True).get(pk=run_id)",
        "Run.objects.get(pk=run_id)",
        (RACES + "test_siblings.py",),
    ),
    Guard(
        "the lock of the run before its job",
        T + "guard.py",
        "    run = lock_run(run_id)\n    job = Job",
        "    run = Run.objects.get(pk=run_id)\n    job = Job",
        (RACES + "test_siblings.py",),
    ),
    Guard(
        "the claim skips what is locked",
        "ci/lifecycle/queue_query.py",
        "FOR NO KEY UPDATE OF job SKIP LOCKED LIMIT 1",
        "FOR NO KEY UPDATE OF job LIMIT 1",
        (RACES + "test_claims.py",),
    ),
    Guard(
        "one job at a time for a runner",
        T + "claim.py",
        "    if Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists():\n        return None\n",
        "",
        (LIFE + "test_claim.py",),
    ),
    Guard(
        "one job ever for a single-use runner",
        T + "claim.py",
        " or (runner.ephemeral and runner.used_job_id is not None)",
        "",
        (LIFE + "test_deadlines.py", LIFE + "test_claim.py"),
    ),
    Guard(
        "a paused runner gets nothing",
        T + "claim.py",
        "runner.paused or ",
        "",
        (LIFE + "test_claim.py",),
    ),
    *(
        Guard(
            f"the token under the lock: {verb}",
            T + f"{verb}.py",
            "    check_token(job, token)\n",
            "",
            (RACES + "test_token_under_the_lock.py",),
        )
        for verb in ("heartbeat", "update_steps", "complete")
    ),
    Guard(
        "the token under the lock: append_log",
        T + "append_log.py",
        "    check_token(holder, token)\n    try:\n",
        "    try:\n",
        (RACES + "test_token_under_the_lock.py",),
    ),
    Guard(
        "the token under the lock: seal_log",
        T + "seal_log.py",
        "    check_token(job, token)\n",
        "",
        (RACES + "test_holder_under_the_lock.py",),
    ),
    Guard(
        "the lines of a later assignment begin below those of the first",
        T + "moves.py",
        "        logs.begin_anew(job.pk)\n",
        "",
        ("tests/interop/test_update_log.py::test_the_lines_of_a_later_assignment_come_below_those_of_the_first",),
    ),
    Guard(
        "the assignment under the lock",
        T + "guard.py",
        "(job.runner_id, job.assignment) == (token.runner_id, token.assignment)",
        "job.runner_id == token.runner_id",
        (RACES + "test_holder_under_the_lock.py",),
    ),
    Guard(
        "the runner under the lock",
        T + "guard.py",
        "(job.runner_id, job.assignment) == (token.runner_id, token.assignment)",
        "job.assignment == token.assignment",
        (RACES + "test_holder_under_the_lock.py",),
    ),
    Guard(
        "no heartbeat for an ended job",
        T + "heartbeat.py",
        "    if job.is_ended:\n        raise JobEnded(str(job.conclusion), job.cancel_reason)\n",
        "",
        (LIFE + "test_heartbeat.py",),
    ),
    Guard(
        "a repeated end changes nothing",
        T + "complete.py",
        "    if job.is_ended:\n        return JobEnd(str(job.conclusion), job.cancel_reason)\n",
        "",
        (LIFE + "test_complete.py",),
    ),
    Guard(
        "a cancel that came first wins",
        T + "complete.py",
        "Conclusion.CANCELLED if job.cancel_reason else Conclusion(conclusion)",
        "Conclusion(conclusion)",
        (LIFE + "test_complete.py",),
    ),
    Guard(
        "the end advances the run",
        T + "complete.py",
        "    advance(run)\n",
        "",
        (LIFE + "test_complete.py",),
    ),
    Guard(
        "a finished step does not change",
        T + "update_steps.py",
        "        if step.state == StepState.ENDED:\n            continue\n",
        "",
        (LIFE + "test_update_steps.py",),
    ),
    Guard(
        "running is written on the version that was read",
        T + "runner_phase.py",
        "filter(pk=seen.pk, version=seen.version)",
        "filter(pk=seen.pk)",
        (RACES + "test_start_runner.py",),
    ),
    Guard(
        "a terminal phase stays",
        T + "runner_phase.py",
        "if runner is None or runner.is_done or runner.phase == RunnerPhase.RUNNING:",
        "if runner is None:",
        (RACES + "test_start_runner.py",),
    ),
    Guard(
        "job details are written once",
        T + "runner_phase.py",
        "filter(unset_or_same, pk=runner_id, ephemeral=True)",
        "filter(pk=runner_id, ephemeral=True)",
        (RACES + "test_start_runner.py",),
    ),
    Guard(
        "an old version changes nothing",
        T + "guard.py",
        "    if version is not None and row.version != version:\n",
        "    if False:\n",
        (LIFE + "test_cancel.py",),
    ),
    Guard(
        "a deadline that has not passed",
        T + "deadlines.py",
        " or job.deadline_at > timezone.now()",
        "",
        (LIFE + "test_deadlines.py",),
    ),
    Guard(
        "a heartbeat that came meanwhile",
        T + "deadlines.py",
        '    if silence < settings.HEARTBEAT_SECONDS:\n        return ""\n',
        "",
        (LIFE + "test_deadlines.py",),
    ),
    Guard(
        "a cancel wins over the queue",
        T + "deadlines.py",
        '    if job.cancel_reason:\n        end(job, Conclusion.CANCELLED, kind="cancelled", note=',
        '    if False:\n        end(job, Conclusion.CANCELLED, kind="cancelled", note=',
        (LIFE + "test_deadlines.py",),
    ),
    Guard(
        "a begun job is not queued again",
        T + "deadlines.py",
        "    elif _has_begun(job):\n",
        "    elif False:\n",
        (LIFE + "test_deadlines.py",),
    ),
    Guard(
        "max-parallel",
        T + "advance.py",
        "    return len(going) < job.max_parallel\n",
        "    return True\n",
        (LIFE + "test_complete.py",),
    ),
    Guard(
        "fail-fast",
        T + "stopping.py",
        "    return _stop_siblings(jobs) or _stop_called(jobs)\n",
        "    return _stop_called(jobs)\n",
        (LIFE + "test_complete.py",),
    ),
    Guard(
        "the concurrency group's lock",
        T + "guard.py",
        "ConcurrencyGroup.objects.select_for_update(no_key=True).get(pk=group_id)",
        "ConcurrencyGroup.objects.get(pk=group_id)",
        (RACES + "test_groups.py",),
    ),
    Guard(
        "one holder of a concurrency group",
        T + "concurrency.py",
        "    if waiting and not _holders(group):\n",
        "    if waiting:\n",
        (LIFE + "test_concurrency.py",),
    ),
    Guard(
        "a run is made once for a push",
        T + "create_run.py",
        "    existing = _existing(cause)\n    if existing is not None:\n        Workflow",
        "    existing = _existing(cause)\n    if False:\n        Workflow",
        (RACES + "test_create_run.py",),
    ),
    Guard(
        "a schedule fires once for a due time",
        "ci/lifecycle/schedules.py",
        "    if row is None or row.next_at > now:\n",
        "    if row is None:\n",
        (LIFE + "test_schedule.py",),
    ),
    Guard(
        "a runner with a job is not removed",
        "ci/lifecycle/registration.py",
        "    if Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists():\n        return False\n",
        "",
        (RACES + "test_remove_runner.py",),
    ),
    Guard(
        "the log's offset",
        "ci/storage/logs.py",
        "WHERE job_id = %(job)s AND lines = %(offset)s AND sealed_at IS NULL",
        "WHERE job_id = %(job)s AND sealed_at IS NULL",
        ("tests/storage",),
    ),
    Guard(
        "the log's seal",
        "ci/storage/logs.py",
        "AND lines = %(offset)s AND sealed_at IS NULL",
        "AND lines = %(offset)s",
        ("tests/storage",),
    ),
    *CANCELS,
    *ROW_LOCKS,
    *VERSION_CONDITIONS,
    *STATES,
    *OF_TRIES,
    *CONSTRAINTS,
    *OF_RUNNER_SETS,
    *OF_ARTIFACTS,
    *OF_CACHES,
    *OF_BLOBS,
    *OF_PUSHES,
    *OF_FILES,
    *OF_VERBS,
)

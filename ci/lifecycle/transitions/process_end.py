"""What follows when the process of a set's runner is gone? Its job first, then the runner, then room for another."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.end_words import OUTDATED_CODE, STOPPED, VANISHED, end_in_words
from ci.lifecycle.errors import Conflict
from ci.lifecycle.transitions.deadlines import release_from_runner
from ci.lifecycle.transitions.guard import guarded, lock_runner
from ci.lifecycle.transitions.launching import close, count_failure, fail
from ci.lifecycle.transitions.leaving import gone, open_attempt
from ci.lifecycle.transitions.moves import write
from ci.models import ACTIVE_STATES, Job, LaunchAttempt, Runner, RunnerPhase

TRIES = 5


def process_ended(*, runner_id: int, attempt: int, exit_code: int | None, reason: str = "") -> bool:
    """The process of this attempt is gone. `exit_code` None: it told none, or (without a `reason`) it vanished.

    A job that it had is requeued or ended, with a reason in words of ours: `reason`, which may hold what the process
    wrote, is for whoever administers the set. False where the attempt was known to be over. Raises NotFound,
    Conflict.
    """
    why = reason or (VANISHED if exit_code is None else f"exit code {exit_code}")
    told = end_in_words(exit_code, why)
    for _ in range(TRIES):
        job = Job.objects.filter(runner=runner_id, state__in=ACTIVE_STATES).order_by("pk").first()
        if job is not None and _is_open(runner_id, attempt):
            release_from_runner(job_id=job.pk, runner_id=runner_id, why=f"runner {job.runner_name} is gone: {told}")
        done = _close(runner_id, attempt, exit_code, why)
        if done is not None:
            return done
    raise Conflict("The runner kept taking jobs while its process was gone.")


def process_stopped(*, runner_id: int, attempt: int) -> bool:
    """The process of this attempt was told to go, and is gone. As process_ended."""
    return process_ended(runner_id=runner_id, attempt=attempt, exit_code=None, reason=STOPPED)


@guarded
def process_forced(*, runner_id: int, attempt: int, again_in: float) -> bool:
    """The process did not go when told to, and is now killed; that is tried again in `again_in` seconds.

    False where the attempt is over. Raises NotFound.
    """
    runner = lock_runner(runner_id)
    current = open_attempt(runner)
    if current is None or current.number != attempt or runner.deleting_at is None:
        return False
    now = timezone.now()
    waited = (now - runner.deleting_at).total_seconds()
    write(runner, cleanup_at=now + timedelta(seconds=again_in))
    events.record(
        "runner_forced",
        runner=runner,
        runner_set=runner.runner_set,
        detail=f"Its process was still there {waited:.0f} s after it was told to go, and is killed.",
    )
    return True


def _is_open(runner_id: int, attempt: int) -> bool:
    return LaunchAttempt.objects.filter(runner=runner_id, number=attempt, ended_at=None).exists()


@guarded
def _close(runner_id: int, attempt: int, exit_code: int | None, why: str) -> bool | None:
    """None where the runner has a job: under its lock no claim can come between."""
    runner = lock_runner(runner_id)
    current = open_attempt(runner)
    if current is None or current.number != attempt:
        return False
    if Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists():
        return None
    if runner.is_done:
        close(current, exit_code=exit_code, reason="" if exit_code == 0 or why == STOPPED else why)
        write(runner, **gone(timezone.now()), exit_code=exit_code)
    else:
        _end_idle(runner, current, exit_code, why)
    events.record("process_ended", runner=runner, runner_set=runner.runner_set, detail=f"attempt {attempt}: {why}")
    events.wake_set(runner.runner_set_id)
    return True


def _end_idle(runner: Runner, current: LaunchAttempt, exit_code: int | None, why: str) -> None:
    """Of a locked runner that has not ended, and no job."""
    if runner.deleting_at is not None:
        # It was told to go because something was wrong with it: that is the reason, not the signal it died of.
        why = runner.reason
    went = exit_code == 0 and runner.registered_at is not None and runner.deleting_at is None
    went = went and runner.used_job_id is None
    # It had come up: what kept it from asking may have been the forge, or the way to it.
    silent = runner.deleting_at is not None and runner.registered_at is not None
    close(current, exit_code=exit_code, reason="" if went else why, failed=not went and not silent)
    if runner.used_job_id is not None:
        fail(runner, f"Its job was deleted, and its process ended: {why}", exit_code=exit_code)
    elif exit_code == OUTDATED_CODE:
        _end(runner, RunnerPhase.OUTDATED, why, exit_code)
    elif silent:
        fail(runner, why, exit_code=exit_code)
    elif runner.deleting_at is not None:
        count_failure(runner, why)
    elif why == VANISHED:
        fail(runner, f"It was lost: {why}")
    elif went:
        _end(runner, RunnerPhase.SUCCEEDED, "Its process ended by itself, without a job.", exit_code)
    elif exit_code == 0:
        count_failure(runner, "its process ended before it asked for a job")
    else:
        count_failure(runner, why)


def _end(runner: Runner, phase: RunnerPhase, reason: str, exit_code: int | None) -> None:
    before, now = runner.phase, timezone.now()
    ending = {"phase": phase, "ready": False, "ended_at": now, "reason": reason[:500], "exit_code": exit_code}
    write(runner, **ending, **gone(now), idle_since=None)
    events.record(
        f"runner_{phase}",
        runner=runner,
        runner_set=runner.runner_set,
        from_state=before,
        to_state=phase,
        detail=reason,
    )

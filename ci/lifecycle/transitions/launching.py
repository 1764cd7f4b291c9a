"""How does a set's runner get its process? One attempt after the other, each with a credential of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.transitions import trouble
from ci.lifecycle.transitions.guard import check_runner_token, guarded, lock_runner
from ci.lifecycle.transitions.leaving import gone, open_attempt
from ci.lifecycle.transitions.moves import write
from ci.models import LaunchAttempt, Runner, RunnerPhase, RunnerSet
from forge.tokens import hash_token, new_token

# Seconds from a runner's first, second, … failure to its next attempt; one more failure, and it is replaced.
# Source: the failedRunnerBackoff of actions-runner-controller.
BACKOFF = (0, 5, 10, 20, 40, 80)
MOST_FAILURES = len(BACKOFF) - 1


@dataclass(frozen=True, kw_only=True)
class Begun:
    """An attempt that has begun: what to start. `token` is kept nowhere else."""

    set_id: int
    runner_id: int
    attempt: int
    launcher: str
    token: str = field(repr=False)
    name: str
    labels: tuple[str, ...]
    template: dict[str, Any]


@guarded
def begin_launch(*, runner_id: int) -> Begun | None:
    """Begin the next attempt of a runner that is due for one; None where it is not, or its set starts none now.

    A launch is of the set as it is now, whatever it was when the runner was made. Raises NotFound.
    """
    runner = lock_runner(runner_id)
    now = timezone.now()
    if runner.is_done or runner.next_attempt_at is None or runner.next_attempt_at > now:
        return None
    runner_set = runner.runner_set
    if runner_set is None or runner_set.phase != RunnerSet.Phase.RUNNING or open_attempt(runner) is not None:
        return None
    if trouble.holds_back(runner_set.pk, now):
        return None
    token = new_token("runner")
    write(
        runner,
        attempts=runner.attempts + 1,
        token_hash=hash_token(token),
        labels=runner_set.labels,
        launcher=runner_set.launcher,
        spec_revision=runner_set.spec_revision,
        next_attempt_at=None,
        last_seen_at=None,
        exit_code=None,
        reason="",
    )
    LaunchAttempt.objects.create(runner=runner, number=runner.attempts, started_at=now)
    events.record("launch_begun", runner=runner, runner_set=runner_set, detail=f"attempt {runner.attempts}")
    return Begun(
        set_id=runner_set.pk,
        runner_id=runner.pk,
        attempt=runner.attempts,
        launcher=runner_set.launcher,
        token=token,
        name=runner.name,
        labels=tuple(runner_set.labels),
        template=runner_set.template,
    )


@guarded
def launched(*, runner_id: int, attempt: int, handle: str) -> bool:
    """The process of this attempt exists. False where the attempt is over already: then nobody will stop it for us.

    Raises NotFound.
    """
    runner = lock_runner(runner_id)
    current = open_attempt(runner)
    if current is None or current.number != attempt:
        return False
    if current.handle != handle or runner.handle != handle:
        LaunchAttempt.objects.filter(pk=current.pk).update(handle=handle, reason="")
        write(runner, handle=handle, launched_at=runner.launched_at or timezone.now())
        events.record("launched", runner=runner, runner_set=runner.runner_set, detail=f"attempt {attempt}")
        events.wake_set(runner.runner_set_id)
    return True


@guarded
def launch_unanswered(*, runner_id: int, attempt: int, reason: str) -> None:
    """Nobody can say whether a process came of this attempt: it stays open, and says why. Raises NotFound."""
    runner = lock_runner(runner_id)
    current = open_attempt(runner)
    if current is not None and current.number == attempt and not current.handle:
        LaunchAttempt.objects.filter(pk=current.pk).update(reason=reason[:500])
        events.wake_set(runner.runner_set_id)


@guarded
def launch_failed(
    *, runner_id: int, attempt: int, reason: str, permanent: bool = False, retry_after: float | None = None
) -> bool:
    """No process came of this attempt. False where the attempt is over already.

    `permanent`: it never will; the runner is failed at once. `retry_after` (seconds): there is no room just now, which
    is no failure; the runner tries again, and is replaced after SCALE_QUOTA_SECONDS (with 0 it is not known to be for
    want of room, and goes on trying). Otherwise it counts as a failure.
    Raises NotFound.
    """
    runner = lock_runner(runner_id)
    current = open_attempt(runner)
    if current is None or current.number != attempt:
        return False
    close(current, reason=reason, failed=permanent or retry_after is None)
    now = timezone.now()
    if runner.is_done:
        write(runner, **gone(now))
    elif permanent:
        fail(runner, f"It cannot be started: {reason}")
    elif retry_after is None:
        count_failure(runner, reason)
    elif retry_after and (waited := now - _waiting_since(runner)) > timedelta(seconds=settings.SCALE_QUOTA_SECONDS):
        fail(runner, f"It waited {waited.total_seconds() / 60:.0f} min for room: {reason}")
    else:
        wait_for_attempt(runner, now + timedelta(seconds=retry_after), reason)
    events.wake_set(runner.runner_set_id)
    return True


def _waiting_since(runner: Runner) -> datetime:
    """When the first of its attempts began that came to nothing, without one in between that came to something."""
    attempts = LaunchAttempt.objects.filter(runner=runner)
    latest = attempts.exclude(handle="", failed=False).order_by("-number").values_list("number", flat=True).first()
    first = attempts.filter(number__gt=latest or 0).order_by("number").values_list("started_at", flat=True).first()
    return first or timezone.now()


def close(attempt: LaunchAttempt, *, exit_code: int | None = None, reason: str = "", failed: bool = False) -> None:
    """The process of a locked runner's attempt is gone, or never was."""
    LaunchAttempt.objects.filter(pk=attempt.pk).update(
        ended_at=timezone.now(), exit_code=exit_code, reason=reason[:500], failed=failed
    )


def count_failure(runner: Runner, reason: str) -> None:
    """Of a locked runner without a job or process: another attempt later, or its end after too many."""
    failures = runner.failures + 1
    if failures > MOST_FAILURES:
        fail(runner, f"Too many failures ({failures}); the last: {reason}", failures=failures)
        return
    wait_for_attempt(runner, timezone.now() + timedelta(seconds=BACKOFF[failures]), reason, failures=failures)
    events.record(
        "launch_failed", runner=runner, runner_set=runner.runner_set, detail=f"attempt {runner.attempts}: {reason}"
    )


def wait_for_attempt(runner: Runner, until: datetime, reason: str, **fields: Any) -> None:
    """Nothing is left of the last attempt: its credential least of all."""
    write(
        runner,
        next_attempt_at=until,
        token_hash=None,
        ready=False,
        handle="",
        launched_at=None,
        registered_at=None,
        idle_since=None,
        deleting_at=None,
        cleanup_at=None,
        reason=reason[:500],
        **fields,
    )


def fail(runner: Runner, reason: str, **fields: Any) -> None:
    """End a locked runner that has neither job nor process; its set makes another one in its place."""
    before, now = runner.phase, timezone.now()
    ending = {"phase": RunnerPhase.FAILED, "ready": False, "ended_at": now, "reason": reason[:500]}
    write(runner, **ending, **gone(now), idle_since=None, next_attempt_at=None, **fields)
    events.record(
        "runner_failed",
        runner=runner,
        runner_set=runner.runner_set,
        from_state=before,
        to_state=RunnerPhase.FAILED,
        detail=reason,
    )


@guarded
def came_up(*, runner_id: int, token_hash: str | None = None) -> None:
    """The process of a set's runner asks for a job for the first time: it is up, and idle.

    `token_hash`: as of claim. Raises Unauthenticated, NotFound.
    """
    runner = lock_runner(runner_id)
    check_runner_token(runner, token_hash)
    if runner.runner_set_id is None or runner.registered_at is not None or runner.is_done:
        return
    if runner.deleting_at is not None or open_attempt(runner) is None:
        return
    now = timezone.now()
    write(runner, registered_at=now, idle_since=now, ready=True)
    events.record("runner_ready", runner=runner, runner_set=runner.runner_set)
    events.wake_set(runner.runner_set_id)

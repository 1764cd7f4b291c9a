"""Which processes of a set's runners must go, how urgently, and which places are given up?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from ci.lifecycle import demand, events
from ci.lifecycle.transitions.guard import lock_free_runner
from ci.lifecycle.transitions.launching import close, fail
from ci.lifecycle.transitions.leaving import gone, told_to_go
from ci.lifecycle.transitions.moves import write
from ci.models import ACTIVE_STATES, Job, LaunchAttempt, Runner, RunnerPhase

# When to look again at a runner that somebody else is changing.
SOON = timedelta(seconds=1)
# So many are changed at once, the rest at the next look: until then all polls of those changed have to wait.
MOST_CHANGED = 200


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A process that must go, by the handle of its very attempt. `force`: it was told to, and did not."""

    runner_id: int
    attempt: int
    launcher: str
    handle: str
    force: bool


@dataclass
class Dying:
    stop: list[Stop] = field(default_factory=list)
    wakes: list[datetime] = field(default_factory=list)
    changed: int = 0


def dying(seen: Iterable[tuple[demand.Seen, Runner]], now: datetime, *, losing_from: datetime | None = None) -> Dying:
    """Go through the runners of a locked set: tell those to go whose time is over, give up those that never went.

    Before `losing_from` none is told to go for its silence: the server may have been what was silent.
    """
    found = Dying()
    seen = list(seen)
    attempts = {
        attempt.runner_id: attempt
        for attempt in LaunchAttempt.objects.filter(runner__in=[runner for _, runner in seen], ended_at=None)
    }
    for one, runner in seen:
        if found.changed >= MOST_CHANGED:
            found.wakes.append(now)
            break
        attempt = attempts.get(runner.pk)
        if runner.is_done:
            _after_the_end(runner, attempt, now, found)
        elif attempt is not None and not one.busy and runner.deleting_at is None:
            _before_its_job(runner, attempt, now, losing_from or now, found)
        if attempt is None or runner.deleting_at is None or runner.stopped_at is not None:
            continue
        if runner.deleting_at + timedelta(seconds=settings.SCALE_CLEANUP_SECONDS) > now:
            _stop(runner, attempt, now, found)
        else:
            _give_up(runner, attempt, now, found)
    return found


def _after_the_end(runner: Runner, attempt: LaunchAttempt | None, now: datetime, found: Dying) -> None:
    if attempt is None:
        _write(runner, now, found, **gone(now))
        found.wakes.append(now)  # there is room for another
    elif runner.deleting_at is None:
        # After its job a process ends by itself; one that was lost is not waited for.
        grace = settings.SCALE_EXIT_SECONDS if runner.phase == RunnerPhase.SUCCEEDED else 0
        due = (runner.ended_at or now) + timedelta(seconds=grace)
        if due > now:
            found.wakes.append(due)
        else:
            _write(runner, now, found, **told_to_go(now))


def _before_its_job(runner: Runner, attempt: LaunchAttempt, now: datetime, losing_from: datetime, found: Dying) -> None:
    """One that does not come up, or does not ask for jobs any more, is told to go."""
    if runner.registered_at is not None:
        last = max(runner.registered_at, runner.last_seen_at or runner.registered_at)
        limit, why = settings.SCALE_SILENT_SECONDS, "It has not asked for a job for {:g} s."
    else:
        # Without an answer to its launch nobody knows whether it will, and that answer may never come.
        last, limit = runner.launched_at or attempt.started_at, settings.SCALE_BOOT_SECONDS
        why = "It did not come up within {:g} s."
    due = last + timedelta(seconds=limit)
    if runner.launched_at is not None:
        due = max(due, losing_from)
    if due > now:
        found.wakes.append(due)
        return
    reason = attempt.reason or why.format(limit)
    # Its credential first: it must not come up while it is told to go.
    gone_for_good = {"token_hash": None, "ready": False, "idle_since": None, "reason": reason}
    if _write(runner, now, found, free=True, **gone_for_good, **told_to_go(now)):
        events.record("runner_silent", runner=runner, runner_set=runner.runner_set, detail=reason)


def _stop(runner: Runner, attempt: LaunchAttempt, now: datetime, found: Dying) -> None:
    assert runner.deleting_at is not None
    force_at = runner.cleanup_at or now
    if attempt.handle:
        found.stop.append(
            Stop(
                runner_id=runner.pk,
                attempt=attempt.number,
                launcher=runner.launcher,
                handle=attempt.handle,
                force=force_at <= now,
            )
        )
    if force_at > now:
        found.wakes.append(force_at)
    found.wakes.append(runner.deleting_at + timedelta(seconds=settings.SCALE_CLEANUP_SECONDS))


def _give_up(runner: Runner, attempt: LaunchAttempt, now: datetime, found: Dying) -> None:
    """Nobody can say whether its process is gone, however often it was killed: its place is not held for ever."""
    detail = f"Its process was not known to be gone {settings.SCALE_CLEANUP_SECONDS:g} s after it was told to go."
    if lock_free_runner(runner) is None:
        found.wakes.append(now + SOON)
        return
    found.wakes.append(now)
    found.changed += 1
    if runner.is_done:
        write(runner, **gone(now))
        close(attempt, reason=detail)
    else:
        # It never had a job: it was told to go because something was wrong with it.
        close(attempt, reason=runner.reason, failed=runner.registered_at is None)
        fail(runner, f"{runner.reason} {detail}")
    events.record("runner_given_up", runner=runner, runner_set=runner.runner_set, detail=detail)


def _write(runner: Runner, now: datetime, found: Dying, *, free: bool = False, **fields: Any) -> bool:
    """Onto the runner as it was looked at; False where it has changed since, or is being changed; with `free` also
    where it has a job, which it may have got between the look and the reading of its row."""
    held = lock_free_runner(runner) is None
    if held or (free and Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists()):
        found.wakes.append(now + SOON)
        return False
    write(runner, **fields)
    found.changed += 1
    return True

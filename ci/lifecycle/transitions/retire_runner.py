"""May an idle single-use runner be taken away? Decided on its own row, which a claim must lock too."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.transitions.guard import check_version, guarded, lock_runner
from ci.lifecycle.transitions.leaving import leaving
from ci.lifecycle.transitions.moves import write
from ci.models import ACTIVE_STATES, Job, Runner, RunnerPhase


@guarded
def retire_runner(
    *,
    runner_id: int,
    reason: str,
    version: int | None = None,
    actor: Any = None,
    phase: RunnerPhase = RunnerPhase.SUCCEEDED,
) -> bool:
    """End a single-use runner that has no job as `phase`, so that its process may be stopped; it gets none from now on.

    `version`: of the row that this was decided on, None for whatever it is now. False, and nothing changed, where the
    runner has a job, has ended already, or is one for many jobs. Raises NotFound, Conflict.
    Source of the rule: the scale-down of actions-runner-controller asks its service first, which refuses a busy one.
    """
    runner = lock_runner(runner_id)
    check_version(runner, version)
    if not runner.ephemeral or runner.is_done or _has_a_job(runner):
        return False
    before = runner.phase
    ending = {"phase": phase, "ready": False, "ended_at": timezone.now(), "reason": reason[:500]}
    write(runner, **ending, **leaving(runner))
    events.wake_set(runner.runner_set_id)
    events.record("runner_retired", runner=runner, from_state=before, to_state=runner.phase, actor=actor, detail=reason)
    return True


def _has_a_job(runner: Runner) -> bool:
    """Under the runner's lock no claim can come between. One whose job vanished has none: it would idle for ever."""
    return Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists()

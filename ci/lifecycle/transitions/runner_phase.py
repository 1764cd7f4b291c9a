"""What phase is a runner in? Terminal phases win: whoever decided on an older version looks again.

Source of the rule: the guarded Running transition of actions-runner-controller.
"""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q
from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.errors import Conflict
from ci.models import Runner, RunnerPhase

TRIES = 5


def start_runner(*, runner_id: int, job_id: int, job_name: str) -> None:
    """The runner has begun its job: its phase becomes running, unless an end came between.

    Of a single-use runner the job is noted in any case, once. Raises Conflict after TRIES lost races.
    """
    _note_job(runner_id, job_id, job_name)
    for _ in range(TRIES):
        runner = Runner.objects.filter(pk=runner_id).first()
        if runner is None or runner.is_done or runner.phase == RunnerPhase.RUNNING:
            return
        if _write(runner, phase=RunnerPhase.RUNNING):
            events.record(
                "runner_busy", runner=runner, from_state=runner.phase, to_state=RunnerPhase.RUNNING, detail=job_name
            )
            return
    raise Conflict("The runner kept changing while its job was starting: try again.")


def _note_job(runner_id: int, job_id: int, job_name: str) -> None:
    # Written once: another job's details never overwrite the first ones.
    unset_or_same = Q(used_job_id=None) | Q(used_job_id=job_id)
    Runner.objects.filter(unset_or_same, pk=runner_id, ephemeral=True).update(
        used_job_id=job_id, used_job_name=job_name[:500]
    )


def finish_runner(*, runner_id: int, phase: RunnerPhase, reason: str, ready: bool = False) -> bool:
    """A single-use runner has ended as `phase` (succeeded, failed or outdated); False when it had ended already.

    Raises Conflict after TRIES lost races.
    """
    for _ in range(TRIES):
        runner = Runner.objects.filter(pk=runner_id, ephemeral=True).first()
        if runner is None or runner.is_done:
            return False
        ending = {"phase": phase, "ready": ready, "reason": reason[:500], "ended_at": timezone.now()}
        if _write(runner, **ending, next_attempt_at=None):
            events.record(f"runner_{phase}", runner=runner, from_state=runner.phase, to_state=phase, detail=reason)
            events.wake_set(runner.runner_set_id)
            return True
    raise Conflict("The runner kept changing while it was ending: try again.")


def _write(seen: Runner, **fields: Any) -> bool:
    """Write only onto the version that was looked at; False when somebody else was faster."""
    changed = Runner.objects.filter(pk=seen.pk, version=seen.version).update(version=F("version") + 1, **fields)
    return changed == 1

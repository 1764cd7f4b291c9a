"""How is a whole run stopped? All jobs are, but for those whose own `if` wants them in a cancelled run.

Source: GitHub docs, "Workflow cancellation reference".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from ci.lifecycle import contexts, events
from ci.lifecycle.scopes import ancestors, by_key, by_scope, results
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.guard import lock_jobs
from ci.lifecycle.transitions.moves import write
from ci.lifecycle.transitions.stopping import stop
from ci.models import CancelReason, Hold, Job, Run, RunState
from ci.workflow import legs
from ci.workflow.expressions import ExpressionError


def stop_run(run: Run, reason: CancelReason, *, note: str, actor: Any = None) -> int:
    """Stop a locked run that has not been before; returns how many jobs that concerned.

    A run that still waits as a whole keeps none of its jobs. Of another one a job goes on, or waits on for its needs,
    if its `if` asks for the status and holds, or may yet hold, with `cancelled()` true.
    """
    if run.cancel_reason:
        return 0
    now = timezone.now()
    write(run, cancel_reason=reason, cancel_requested_at=now, cancelled_by=actor)
    events.record("run_cancelled", run=run, from_state=run.state, to_state=run.state, actor=actor, detail=note)
    jobs = lock_jobs(run)
    kept = _kept(run, jobs) if run.state != RunState.WAITING else set()
    left = [job for job in jobs if not job.is_ended and not job.cancel_reason and job.pk not in kept]
    for job in left:
        stop(job, reason, note=note, actor=actor)
    advance(run)
    return len(left)


def _kept(run: Run, jobs: Sequence[Job]) -> set[int]:
    kept = set()
    for scope in by_scope(jobs).values():
        groups = by_key(scope)
        known = results(groups)
        for job in scope:
            # A call goes on for as long as one of its jobs does.
            if not job.is_ended and (job.hold == Hold.CALLED or _goes_on(run, job, groups, known)):
                kept.add(job.pk)
    return kept


def _goes_on(run: Run, job: Job, groups: dict[str, list[Job]], known: dict[str, str | None]) -> bool:
    if not legs.asks_for_status(job.definition):
        return False
    if not job.expanded:  # its `if` will be evaluated when its needs have ended
        return True
    seen = contexts.of_condition(run, job, groups, known)
    try:
        return legs.enabled(job.definition, contexts=seen, ancestors=ancestors(job.key, groups, known), cancelled=True)
    except ExpressionError:
        return False

"""How is a job stopped for a reason outside of it? Ended where nothing runs yet, asked where something does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.scopes import by_key, by_scope
from ci.lifecycle.transitions.moves import ask_to_stop, end, write
from ci.models import ACTIVE_STATES, CancelReason, Conclusion, Hold, Job


def stop(job: Job, reason: CancelReason, *, note: str, actor: Any = None) -> None:
    """End a locked job that no runner has; ask one that a runner has to stop. A call ends when its jobs have."""
    asked = {"cancel_reason": reason, "cancel_requested_at": timezone.now(), "cancelled_by": actor}
    if job.state in ACTIVE_STATES:
        ask_to_stop(job, reason, actor=actor)
    elif job.hold == Hold.CALLED:
        write(job, **asked)
        events.record("cancel_requested", job=job, from_state=job.state, to_state=job.state, actor=actor, detail=note)
    else:
        end(job, Conclusion.CANCELLED, kind="cancelled", note=note, actor=actor, **asked)


def stop_what_follows(jobs: Sequence[Job]) -> bool:
    """Stop the siblings of a leg that broke its matrix, and the jobs of a call that is to stop; whether any was."""
    return _stop_siblings(jobs) or _stop_called(jobs)


def _stop_siblings(jobs: Sequence[Job]) -> bool:
    moved = False
    for scope in by_scope(jobs).values():
        for group in by_key(scope).values():
            failed = next((leg for leg in group if _breaks_its_matrix(leg)), None)
            if failed is not None:
                note = f"{failed.name} failed, and fail-fast is on."
                moved |= _stop_all(group, CancelReason.FAIL_FAST, note=note)
    return moved


def _stop_called(jobs: Sequence[Job]) -> bool:
    moved = False
    scopes = by_scope(jobs)
    for call in jobs:
        if call.cancel_reason:
            reason = CancelReason(call.cancel_reason)
            note = f"{call.name}, which called it, is being stopped: {reason.label}."
            moved |= _stop_all(scopes.get(call.pk, ()), reason, note=note, actor=call.cancelled_by)
    return moved


def _stop_all(jobs: Sequence[Job], reason: CancelReason, *, note: str, actor: Any = None) -> bool:
    left = [job for job in jobs if not job.is_ended and not job.cancel_reason]
    for job in left:
        stop(job, reason, note=note, actor=actor)
    return bool(left)


def _breaks_its_matrix(leg: Job) -> bool:
    return leg.conclusion == Conclusion.FAILURE and leg.fail_fast and leg.matrix_total > 1 and not leg.continue_on_error

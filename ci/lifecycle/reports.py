"""What comes of a report that says everything at once: that the runner lives, how far the job is, and how it ended?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci.lifecycle.errors import JobEnded
from ci.lifecycle.transitions import complete, heartbeat, update_steps
from ci.lifecycle.transitions.guard import Proof, guarded
from ci.lifecycle.transitions.seal_log import settle_sealed_log
from ci.models import Job


@dataclass(frozen=True)
class Standing:
    """`conclusion`: of a job that has ended. `cancelled`: it shall stop, or was stopped. `outputs`: the names kept."""

    conclusion: str | None = None
    cancelled: bool = False
    outputs: tuple[str, ...] = ()


def report(
    *,
    job_id: int,
    token: Proof,
    steps: Sequence[Mapping[str, Any]],
    conclusion: str | None = None,
    outputs: Mapping[str, str] | None = None,
) -> Standing:
    """Heartbeat, which acknowledges, then the steps, and with a `conclusion` the end: all of it or nothing.

    A job that has ended stays as it is. Raises NotFound, Unauthenticated, InvalidInput.
    """
    try:
        return _report(job_id=job_id, token=token, steps=steps, conclusion=conclusion, outputs=outputs or {})
    except JobEnded as ended:
        return Standing(ended.conclusion, bool(ended.reason), _outputs_of(job_id))


@guarded
def _report(
    *,
    job_id: int,
    token: Proof,
    steps: Sequence[Mapping[str, Any]],
    conclusion: str | None,
    outputs: Mapping[str, str],
) -> Standing:
    beat = heartbeat(job_id=job_id, token=token)
    if conclusion is None:
        if steps:
            update_steps(job_id=job_id, token=token, steps=steps)
        return Standing(cancelled=beat.cancel is not None)
    end = complete(job_id=job_id, token=token, conclusion=conclusion, steps=steps, outputs=outputs)
    # The last line may have come before the end.
    settle_sealed_log(Job.objects.get(pk=job_id))
    return Standing(end.conclusion, bool(end.reason), tuple(sorted(outputs)))


def _outputs_of(job_id: int) -> tuple[str, ...]:
    kept = Job.objects.filter(pk=job_id).values_list("outputs", flat=True).first()
    return tuple(sorted(kept or {}))

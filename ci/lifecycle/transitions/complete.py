"""How does a job end by its own runner? Once; outputs kept, dependents released, the run concluded, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci.lifecycle.errors import Conflict, InvalidInput
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.guard import Proof, check_token, guarded, lock_job
from ci.lifecycle.transitions.moves import end
from ci.lifecycle.transitions.update_steps import write_steps
from ci.models import CancelReason, Conclusion, Job, JobState

MAX_OUTPUTS = 100
MAX_OUTPUT_KEY = 255
MAX_OUTPUT_VALUE = 1024 * 1024
MAX_URL = 1000


@dataclass(frozen=True)
class JobEnd:
    conclusion: str
    reason: str


@guarded
def complete(
    *,
    job_id: int,
    token: Proof,
    conclusion: str,
    outputs: Mapping[str, str] | None = None,
    steps: Sequence[Mapping[str, Any]] = (),
    environment_url: str = "",
) -> JobEnd:
    """End a running job; asked again, answer how it ended. A cancel asked before wins over what the runner says.

    `environment_url`: an http or https address, which pages link.
    Raises NotFound, Unauthenticated, Conflict (not acknowledged), InvalidInput.
    """
    run, job = lock_job(job_id)
    check_token(job, token)
    if job.is_ended:
        return JobEnd(str(job.conclusion), job.cancel_reason)
    if job.state != JobState.RUNNING:
        raise Conflict("The assignment is not acknowledged: send a heartbeat first.")
    _check_end(outputs or {}, environment_url)
    write_steps(job, steps)
    ending = Conclusion.CANCELLED if job.cancel_reason else Conclusion(conclusion)
    end(job, ending, note=_note(job, ending), outputs=dict(outputs or {}), environment_url=environment_url)
    advance(run)
    return JobEnd(str(job.conclusion), job.cancel_reason)


def _check_end(outputs: Mapping[str, str], environment_url: str) -> None:
    errors = {}
    if environment_url and not (
        environment_url.startswith(("http://", "https://")) and len(environment_url) <= MAX_URL
    ):
        errors["environment_url"] = f"It must be an http or https address of at most {MAX_URL} characters."
    if len(outputs) > MAX_OUTPUTS:
        errors["outputs"] = f"A job has at most {MAX_OUTPUTS} outputs."
    for key, value in outputs.items():
        if len(key) > MAX_OUTPUT_KEY or len(value) > MAX_OUTPUT_VALUE:
            errors[key[:50]] = f"A name has at most {MAX_OUTPUT_KEY} characters, a value at most {MAX_OUTPUT_VALUE}."
    if errors:
        raise InvalidInput(errors)


def _note(job: Job, conclusion: str) -> str:
    if not job.cancel_reason:
        return ""
    if job.cancel_reason == CancelReason.OWNER and job.cancelled_by is not None:
        return f"Cancelled by {job.cancelled_by.get_username()}."
    if job.cancel_reason == CancelReason.TIME_BUDGET:
        return f"It ran longer than its timeout of {job.timeout_minutes:g} minutes."
    return f"{CancelReason(job.cancel_reason).label}."

"""What do the calls do that have a raw route beside their view? The same, behind both."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from ci.api.bodies import BodyError, parse_object
from ci.api.runner.serializers import HeartbeatResponse, LogRequest
from ci.lifecycle import fetch as lifecycle_fetch
from ci.lifecycle import transitions
from ci.lifecycle.runner_versions import refuse_outdated
from ci.models import Runner


def fetch(*, runner: Runner, poll_id: str) -> dict[str, Any] | None:
    """The job's payload, None when no job fits now. `runner`: as it was when the call was let in, which may be some
    time ago. Raises Unauthenticated, RunnerOutdated."""
    refuse_outdated(runner)
    return lifecycle_fetch.fetch_job(runner_id=runner.pk, token_hash=runner.token_hash, poll_id=poll_id)


def heartbeat(*, job_id: int, token: str) -> dict[str, Any]:
    """The answer's JSON. Raises Unauthenticated, NotFound, JobEnded."""
    answer = transitions.heartbeat(job_id=job_id, token=token)
    shape = {
        "cancel": answer.cancel or None,
        "deadline": answer.deadline,
        "force_at": answer.force_at,
        "now": timezone.now(),
    }
    return dict(HeartbeatResponse(shape).data)


def log_request(raw: bytes, kind: str) -> dict[str, Any]:
    """Offset and lines, checked, in a body of the media type `kind`. Raises BodyError, ValidationError."""
    if raw and kind.partition(";")[0].strip().lower() != "application/json":
        raise BodyError("The body must be application/json.", status=415, code="unsupported_media_type")
    shape = LogRequest(data=parse_object(raw, any_text=True))
    shape.is_valid(raise_exception=True)
    return shape.validated_data


def append_log(*, job_id: int, token: str, given: dict[str, Any]) -> dict[str, Any]:
    """The answer's JSON; `given` as LogRequest has it. Raises what the transition raises."""
    next_offset = transitions.append_log(job_id=job_id, token=token, offset=given["offset"], lines=given["lines"])
    return {"next_offset": next_offset}

"""What do the two waiting calls do when they do not wait? Used by the views and by the raw routes."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from ci.api.runner.serializers import HeartbeatResponse
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

"""How does a running job prove itself to the services of artifacts and caches? By a token that its actions can read.

Its shape (scope, ids, Permission 2: read and write) is what GitHub's clients take apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import jwt
from django.conf import settings
from django.utils import timezone
from django.utils.crypto import salted_hmac

from ci.lifecycle.errors import JobEnded, Unauthenticated
from ci.lifecycle.transitions.guard import lock_job
from ci.models import ACTIVE_STATES, Job

ALGORITHM = "HS256"
MAX_TOKEN = 4096  # characters
# A job is over when its own end says so; these bound a token whose job's end nobody comes to write.
LEAST_LIFETIME = timedelta(hours=24)
_BEYOND_THE_JOB = timedelta(hours=1)
# For runners whose clock is behind ours and who look at it.
_VALID_BEFORE = timedelta(minutes=5)


@dataclass(frozen=True)
class RuntimeUrls:
    """The values of ACTIONS_RUNTIME_URL, ACTIONS_RESULTS_URL and ACTIONS_CACHE_URL. Each ends in a slash."""

    runtime: str
    results: str
    cache: str


def urls() -> RuntimeUrls:
    server = settings.SERVER_URL
    return RuntimeUrls(
        runtime=f"{server}/api/actions_pipeline/",
        results=f"{server}/",
        cache=f"{server}/api/actions_cache/",
    )


def issue(job: Job) -> str:
    """A token for a job just assigned; it is worth nothing once the job has ended or another assignment follows."""
    now = timezone.now()
    said = {
        "scp": f"Actions.Results:{job.run_id}:{job.pk}",
        "ac": json.dumps([{"Scope": "", "Permission": 2}], separators=(",", ":")),
        "TaskID": job.pk,
        "RunID": job.run_id,
        "JobID": job.pk,
        "assignment": job.assignment,
        "nbf": int((now - _VALID_BEFORE).timestamp()),
        "exp": int(_end(job, now).timestamp()),
    }
    return jwt.encode(said, _key(), algorithm=ALGORITHM)


def job_of(token: str) -> Job:
    """The active job whose current assignment this token is of; its post steps after a cancel are part of it.

    Raises Unauthenticated, JobEnded.
    """
    said = _read(token)
    job = Job.objects.select_related("run__repository__owner").filter(pk=said["JobID"]).first()
    if job is None:
        raise Unauthenticated()
    _check_active(job, said["assignment"])
    return job


def lock_caller(job: Job) -> Job:
    """The job that `job_of` found, locked with its run, if it is active in that very assignment still.

    Raises NotFound, Unauthenticated, JobEnded.
    """
    _, locked = lock_job(job.pk)
    _check_active(locked, job.assignment)
    return locked


def _check_active(job: Job, assignment: int) -> None:
    if job.assignment != assignment:
        raise Unauthenticated()
    if job.is_ended:
        raise JobEnded(str(job.conclusion), job.cancel_reason)
    if job.state not in ACTIVE_STATES:  # it waits for a runner again
        raise Unauthenticated()


def _read(token: str) -> dict[str, Any]:
    """The claims, proven. Raises Unauthenticated."""
    if len(token) > MAX_TOKEN:
        raise Unauthenticated()
    try:
        said = jwt.decode(token, _key(), algorithms=[ALGORITHM], options={"require": ["exp", "nbf"]})
    except jwt.ExpiredSignatureError:
        raise Unauthenticated("This runtime token has expired.") from None
    except (jwt.InvalidTokenError, ValueError):
        raise Unauthenticated("This is no runtime token of a job: send ACTIONS_RUNTIME_TOKEN as it is.") from None
    return said


def _end(job: Job, now: datetime) -> datetime:
    needed = timedelta(minutes=job.timeout_minutes) + job.grace + _BEYOND_THE_JOB
    return now + max(LEAST_LIFETIME, needed)


def _key() -> bytes:
    """Of nothing else: a token that was signed for another purpose is none of these."""
    return salted_hmac("ci.lifecycle.runtime_tokens", "key", algorithm="sha256").digest()

"""Whose token is this? Looked up by hash, never by the token itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from ci.lifecycle.errors import NotFound, Unauthenticated
from ci.models import ACTIVE_STATES, Job, RegistrationToken, Runner
from ci.workflow import permissions
from forge.access import JobActor
from forge.tokens import PREFIXES, hash_token, same_token

USED_EVERY = timedelta(minutes=1)


def runner_of(token: str) -> Runner:
    """The runner that this `frr_` token belongs to. Raises Unauthenticated."""
    runner = Runner.objects.filter(token_hash=_hash(token, "runner")).first()
    if runner is None:
        raise Unauthenticated()
    return runner


def check_job_token(job_id: int, token: str) -> None:
    """Refuse what is not the current token of this job, ended or not. Raises Unauthenticated, NotFound.

    Not a guard: the transitions check the token again under their lock. So no more of the job is read than its hash.
    """
    _hash(token, "job")
    with connection.cursor() as cursor:
        cursor.execute("SELECT token_hash FROM ci_job WHERE id = %s", [job_id])
        row = cursor.fetchone()
    if row is None:
        raise NotFound("There is no such job; its run may have been deleted.")
    if not same_token(row[0], token):
        raise Unauthenticated()


def registration_token_of(token: str) -> RegistrationToken:
    """The usable registration token that this is. Raises Unauthenticated."""
    found = RegistrationToken.objects.filter(token_hash=_hash(token, "registration")).first()
    if found is None or not found.is_usable:
        raise Unauthenticated("This registration token is unknown, has expired or was revoked: create a new one.")
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USED_EVERY)
    RegistrationToken.objects.filter(stale, pk=found.pk).update(last_used_at=now)
    return found


def actor_of_job_token(token: str, *, permission: str = "contents") -> JobActor | None:
    """The job that proves itself by this token, as long as it is active: the token dies with the job.

    What it may read and write is what `permissions` grant it of `permission`; a run that nobody with write access
    caused writes nothing, whatever its own file says.
    """
    job = Job.objects.filter(token_hash=hash_token(token), state__in=ACTIVE_STATES).select_related("run").first()
    if job is None:
        return None
    # Every token may read metadata: GitHub docs, "Permissions for the GITHUB_TOKEN".
    granted = "read" if permission == "metadata" else token_permissions(job)[permission]
    return JobActor(
        repository_id=job.run.repository_id,
        job_id=job.pk,
        may_read=granted != "none",
        may_write=granted == "write" and job.run.trusted,
        name=f"job {job.name}",
    )


def token_permissions(job: Job) -> dict[str, str]:
    """What the job's token may do: read, write or none of each permission; in a called workflow at most its call's.

    Where nothing is named it is what the call has (actions/runner's WorkflowTemplateConverter hands that on), and
    without a call GitHub's restricted default, reading contents and packages.
    """
    call = job.parent
    own = job.definition.get("permissions")
    if call is None:
        return permissions.effective(_plain(job.run.permissions), own, permissions.policy("LimitedRead"))
    granted = token_permissions(call)
    return permissions.effective(call.definition["called"]["permissions"], own, granted, ceiling=granted)


def _plain(stored: Any) -> Any:
    """A run keeps `read-all` as {"all": "read-all"}."""
    return stored["all"] if isinstance(stored, dict) and "all" in stored else stored


def _hash(token: str, kind: str) -> str:
    if not token.startswith(PREFIXES[kind]):
        raise Unauthenticated()
    return hash_token(token)

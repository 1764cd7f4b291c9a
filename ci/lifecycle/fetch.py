"""What does a poll get? The assignment it was already given, or a new one, or nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError
from django.db.models import Q
from django.utils import timezone

from ci.lifecycle import payload
from ci.lifecycle.errors import NotFound, Unauthenticated, UnfitJob
from ci.lifecycle.transitions import Assignment, came_up, claim, fail_unpreparable, repeat_claim
from ci.lifecycle.transitions.guard import guarded
from ci.models import Job, Runner

logger = logging.getLogger(__name__)
T = TypeVar("T")
# What a runner is told of its job, and the job's token in plain: each protocol has its own words for it.
Build = Callable[[Job, str], T]

# One broken job after another must not keep a poll for ever; the next poll goes on.
MAX_TRIES = 20
# Seen-at is for people: a write for every poll would cost more than the poll.
SEEN_EVERY = timedelta(seconds=20)


class _Unpreparable(Exception):
    def __init__(self, job_id: int, note: str) -> None:
        super().__init__(note)
        self.job_id = job_id
        self.note = note


def fetch_job(*, runner_id: int, token_hash: str | None, poll_id: str) -> dict[str, Any] | None:
    """The payload of a job for this runner, or None.

    `token_hash`: of the credential that let the poll in. Raises Unauthenticated when it was replaced since, or the
    runner is gone.
    """
    return fetch_as(payload.build, runner_id=runner_id, token_hash=token_hash, poll_id=poll_id)


def fetch_as(build: Build[T], *, runner_id: int, token_hash: str | None, poll_id: str, again: bool = False) -> T | None:
    """As `fetch_job`, in words of another protocol. A job of which `build` raises ends failed; the next is tried.

    `again`: this very poll has looked before, in vain; since then its runner was not given anything.
    """
    try:
        if not again:
            _seen(runner_id, token_hash)
        for _ in range(MAX_TRIES):
            try:
                return _fetch(runner_id, token_hash, poll_id, build, again)
            except _Unpreparable as broken:
                fail_unpreparable(job_id=broken.job_id, note=broken.note)
    except NotFound:
        raise Unauthenticated("This runner was removed: register it again.") from None
    return None


@guarded
def _fetch(runner_id: int, token_hash: str | None, poll_id: str, build: Build[T], again: bool) -> T | None:
    # Claim and payload in one transaction: a job whose payload cannot be built has never been assigned.
    assignment = None if again else repeat_claim(runner_id=runner_id, poll_id=poll_id)
    if assignment is None:
        assignment = claim(runner_id=runner_id, poll_id=poll_id, token_hash=token_hash)
    return None if assignment is None else _payload(assignment, build)


def _payload(assignment: Assignment, build: Build[T]) -> T:
    job = assignment.job
    try:
        return build(job, assignment.token)
    except (OperationalError, InterfaceError):
        raise  # the database broke off: no fault of the job
    except UnfitJob as error:
        raise _Unpreparable(job.pk, error.detail) from error
    except Exception as error:  # whatever is wrong with this job, the next one is not to blame
        logger.exception("job %s could not be prepared", job.pk)
        note = f"The job could not be prepared for a runner: {error}"
        raise _Unpreparable(job.pk, note) from error


def _seen(runner_id: int, token_hash: str | None) -> None:
    now = timezone.now()
    late = Runner.objects.filter(Q(last_seen_at=None) | Q(last_seen_at__lt=now - SEEN_EVERY), pk=runner_id)
    if token_hash is not None:
        late = late.filter(token_hash=token_hash)
    if not late.update(last_seen_at=now):
        return
    if Runner.objects.filter(pk=runner_id, runner_set__isnull=False, registered_at=None).exists():
        came_up(runner_id=runner_id, token_hash=token_hash)

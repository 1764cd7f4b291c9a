"""Which queued job does a polling runner get? The first that fits, and that no other runner is taking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from ci.lifecycle import demand, events
from ci.lifecycle.matching import normalised
from ci.lifecycle.queue_query import CLAIM, CLAIM_BY_REPOSITORY
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.guard import check_runner_token, guarded, joining, lock_job, lock_runner
from ci.lifecycle.transitions.moves import end
from ci.models import ACTIVE_STATES, Conclusion, Job, JobState, Runner, RunnerSet
from forge.tokens import hash_token, new_token

# On a busy machine a statement may stand still while others take all the heads it saw. Jobs that somebody keeps locked,
# as who cancels them does, are not waited for.
MOST_LOOKS = 3
# Nearly every poll asks this in vain: building it by the ORM would cost more than the answer.
_LOCK_GIVEN = """
SELECT id FROM "ci_job" WHERE runner_id = %s AND state = 'assigned' AND poll_id = %s
ORDER BY id LIMIT 1 FOR NO KEY UPDATE
"""
# The first half of the advisory locks of sets with a limit for each repository; the number is arbitrary.
SHARED_LIMIT = 0x466F7267


@dataclass(frozen=True)
class Assignment:
    """A job given to a runner, with the one copy of its token; `job` is as it was after the claim."""

    job: Job
    token: str


@joining
def repeat_claim(*, runner_id: int, poll_id: str) -> Assignment | None:
    """The assignment that this very poll was given before, if it is not acknowledged yet: with a token made anew."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_GIVEN, [runner_id, poll_id])
        given = cursor.fetchone()
    if given is None:
        return None
    job = Job.objects.select_related("run__repository__owner", "log").get(pk=given[0])
    token = new_token("job")
    job.token_hash = hash_token(token)
    job.version += 1
    job.save(update_fields=["token_hash", "version"])
    events.record("claim_repeated", job=job, runner=job.runner, from_state=job.state, to_state=job.state)
    return Assignment(job, token)


@joining
def claim(*, runner_id: int, poll_id: str, token_hash: str | None = None) -> Assignment | None:
    """Take a queued job for a runner. Locks the runner and one job, no run.

    `token_hash`: of the credential that let the poll in, None for whatever it is now. Raises Unauthenticated where it
    was replaced, for then another process is the runner; NotFound where the runner is gone.
    """
    runner = lock_runner(runner_id)
    check_runner_token(runner, token_hash)
    if runner.paused or runner.is_done or (runner.ephemeral and runner.used_job_id is not None):
        return None
    # Of a set's runner: its process shall go, or has gone and is to be started anew. Then this is a late poll.
    if runner.deleting_at is not None or runner.next_attempt_at is not None:
        return None
    if Job.objects.filter(runner=runner, state__in=ACTIVE_STATES).exists():
        return None
    limits = _limits_of_set(runner)
    if limits is None:
        return None
    token = new_token("job")
    job_id = _take(runner, poll_id, hash_token(token), limits)
    if job_id is None:
        return None
    job = Job.objects.select_related("run__repository__owner", "log").get(pk=job_id)  # all that its payload names
    if runner.ephemeral:
        runner.used_job_id, runner.used_job_name, runner.idle_since = job.pk, job.name, None
        runner.version += 1
        runner.save(update_fields=["used_job_id", "used_job_name", "idle_since", "version"])
    events.record("claimed", job=job, runner=runner, from_state=JobState.QUEUED, to_state=JobState.ASSIGNED)
    if job.deadline_at is not None:
        events.tell_watch(job.deadline_at)
    return Assignment(job, token)


def _limits_of_set(runner: Runner) -> dict[str, Any] | None:
    """What its set lets a runner take, for the query; None: nothing, because the set is being deleted."""
    runner_set = runner.runner_set
    if runner_set is None:
        return {"repositories": None, "full": []}
    if runner_set.phase == RunnerSet.Phase.DELETING:
        return None
    if runner_set.maximum_per_repository is not None:
        # One after the other, or two at once would both count the same jobs. Whoever holds this lock waits for nothing.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [SHARED_LIMIT, runner_set.pk])
    return {"repositories": demand.limits(runner_set)["repositories"], "full": demand.full_repositories(runner_set)}


def _take(runner: Runner, poll_id: str, token_hash: str, limits: dict[str, Any]) -> int | None:
    now = timezone.now()
    values = {
        "runner": runner.pk,
        "name": runner.name,
        "single_use": runner.ephemeral,
        "token_hash": token_hash,
        "poll_id": poll_id,
        "now": now,
        "deadline": now + timedelta(seconds=settings.ACKNOWLEDGE_SECONDS),
        "repository": runner.repository_id,
        "owner": runner.owner_id if runner.repository_id is None else None,
        "labels": normalised(runner.labels),
        **limits,
    }
    with connection.cursor() as cursor:
        for _ in range(MOST_LOOKS):
            cursor.execute(CLAIM_BY_REPOSITORY if limits["repositories"] or limits["full"] else CLAIM, values)
            job_id, any_waited = cursor.fetchone()
            if job_id is not None or not any_waited:
                return None if job_id is None else int(job_id)
    return None


@guarded
def fail_unpreparable(*, job_id: int, note: str) -> None:
    """End a queued job that could not be made ready for a runner, so that it stops nobody else."""
    run, job = lock_job(job_id)
    if job.state != JobState.QUEUED:
        return
    end(job, Conclusion.FAILURE, kind="unpreparable", note=note)
    advance(run)

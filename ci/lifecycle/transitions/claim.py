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
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.guard import check_runner_token, guarded, lock_job, lock_runner
from ci.lifecycle.transitions.moves import end
from ci.models import ACTIVE_STATES, Conclusion, Job, JobState, Runner, RunnerSet
from forge.tokens import hash_token, new_token

# More than claims can be going on at once: with all heads locked by others an empty answer would come while jobs wait.
HEADS = 64
# The first half of the advisory locks of sets with a limit for each repository; the number is arbitrary.
SHARED_LIMIT = 0x466F7267

CLAIM = f"""
UPDATE ci_job SET state = 'assigned', runner_id = %(runner)s, runner_name = %(name)s, single_use = %(single_use)s,
    token_hash = %(token_hash)s, poll_id = %(poll_id)s, assignment = assignment + 1, assigned_at = %(now)s,
    deadline_at = %(deadline)s, version = version + 1
WHERE id = (
    SELECT job.id FROM (
        SELECT head.* FROM ci_labelset
        CROSS JOIN LATERAL (
            SELECT queued.id, queued.priority, queued.queued_at FROM ci_job queued
            JOIN ci_run run ON run.id = queued.run_id
            JOIN forge_repository repository ON repository.id = run.repository_id
            WHERE queued.label_set_id = ci_labelset.id AND queued.state = 'queued'
                AND (%(repository)s::bigint IS NULL OR repository.id = %(repository)s)
                AND (%(owner)s::bigint IS NULL OR repository.owner_id = %(owner)s)
                AND (%(repositories)s::bigint[] IS NULL OR repository.id = ANY(%(repositories)s))
                AND repository.id <> ALL(%(full)s::bigint[])
            ORDER BY queued.priority DESC, queued.queued_at, queued.id LIMIT {HEADS}
        ) head
        WHERE ci_labelset.labels <@ %(labels)s::varchar[]
        ORDER BY head.priority DESC, head.queued_at, head.id LIMIT {HEADS}
    ) heads
    JOIN ci_job job ON job.id = heads.id
    WHERE job.state = 'queued'
    ORDER BY job.priority DESC, job.queued_at, job.id
    FOR NO KEY UPDATE OF job SKIP LOCKED LIMIT 1
)
RETURNING id
"""  # noqa: S608 (the only value set in is a constant)


@dataclass(frozen=True)
class Assignment:
    """A job given to a runner, with the one copy of its token; `job` is as it was after the claim."""

    job: Job
    token: str


@guarded
def repeat_claim(*, runner_id: int, poll_id: str) -> Assignment | None:
    """The assignment that this very poll was given before, if it is not acknowledged yet: with a token made anew."""
    job = (
        Job.objects.select_for_update(no_key=True)
        .filter(runner=runner_id, state=JobState.ASSIGNED, poll_id=poll_id)
        .order_by("pk")  # the model's order joins the run, and would lock it too
        .first()
    )
    if job is None:
        return None
    token = new_token("job")
    job.token_hash = hash_token(token)
    job.version += 1
    job.save(update_fields=["token_hash", "version"])
    events.record("claim_repeated", job=job, runner=job.runner, from_state=job.state, to_state=job.state)
    return Assignment(job, token)


@guarded
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
    job = Job.objects.get(pk=job_id)
    if runner.ephemeral:
        runner.used_job_id, runner.used_job_name, runner.idle_since = job.pk, job.name, None
        runner.version += 1
        runner.save(update_fields=["used_job_id", "used_job_name", "idle_since", "version"])
    events.record("claimed", job=job, runner=runner, from_state=JobState.QUEUED, to_state=JobState.ASSIGNED)
    events.notify(events.DEADLINE_SET)
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
    with connection.cursor() as cursor:
        cursor.execute(
            CLAIM,
            {
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
            },
        )
        row = cursor.fetchone()
    return row[0] if row else None


@guarded
def fail_unpreparable(*, job_id: int, note: str) -> None:
    """End a queued job that could not be made ready for a runner, so that it stops nobody else."""
    run, job = lock_job(job_id)
    if job.state != JobState.QUEUED:
        return
    end(job, Conclusion.FAILURE, kind="unpreparable", note=note)
    advance(run)

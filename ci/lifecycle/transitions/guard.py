"""What does every guarded write share? One transaction, locks in one order, and retries within a bound."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, ParamSpec, TypeVar

from django.db import connection, transaction

from ci.lifecycle.errors import Conflict, NotFound, Unauthenticated
from ci.lifecycle.transitions.tries import until_done
from ci.models import ConcurrencyGroup, Job, JobState, Run, Runner, RunnerSet
from forge.tokens import same_token

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Holder:
    """The runner that a job was given to, in which assignment: how a runner whose protocol knows no job tokens proves
    itself, once its own token has been checked."""

    runner_id: int
    assignment: int


Proof = str | Holder


class Held(NamedTuple):
    """Of a locked job, what tells who has it."""

    token_hash: str | None
    runner_id: int | None
    assignment: int


def guarded(verb: Callable[P, R]) -> Callable[P, R]:
    """Run `verb` in one transaction; anew, within a bound, after a deadlock, serialization failure or lost connection.

    Inside a caller's transaction it joins that one and does not retry: only the whole can be run anew.
    """

    @functools.wraps(verb)
    def transition(*args: P.args, **kwargs: P.kwargs) -> R:
        if connection.in_atomic_block:
            with transaction.atomic():
                return verb(*args, **kwargs)
        return until_done(functools.partial(verb, *args, **kwargs))

    return transition


def joining(verb: Callable[P, R]) -> Callable[P, R]:
    """As `guarded`, but inside a caller's transaction without a savepoint.

    For a verb that refuses before it writes, and whose other errors are the end of its caller too.
    """
    alone = guarded(verb)

    @functools.wraps(verb)
    def transition(*args: P.args, **kwargs: P.kwargs) -> R:
        return verb(*args, **kwargs) if connection.in_atomic_block else alone(*args, **kwargs)

    return transition


# FOR NO KEY UPDATE everywhere: an event row's foreign key must not wait for the run's lock, or a claim, which takes no
# run lock, could wait for a cancel that waits for it.


def lock_group(group_id: int) -> ConcurrencyGroup:
    return ConcurrencyGroup.objects.select_for_update(no_key=True).get(pk=group_id)


def lock_run(run_id: int) -> Run:
    """The run's lock covers its jobs too, except that a claim may take a queued one. Raises NotFound."""
    try:
        return Run.objects.select_for_update(no_key=True).get(pk=run_id)
    except Run.DoesNotExist:
        raise NotFound("There is no such run; it may have been deleted.") from None


def lock_jobs(run: Run) -> list[Job]:
    """All jobs of the current attempt, those that may still move locked, in id order."""
    moving = Job.objects.filter(run=run, attempt=run.attempt).exclude(state=JobState.ENDED).order_by("id")
    locked = {job.pk: job for job in moving.select_for_update(no_key=True)}
    # Read apart, so that no row is read twice: under the run's lock no job can be between the two.
    ended = Job.objects.filter(run=run, attempt=run.attempt, state=JobState.ENDED).order_by("id")
    known = {job.pk: job for job in ended} | locked
    found = sorted(known.values(), key=lambda job: (job.level, job.key, job.matrix_index))
    for job in found:
        job.run = run
        if job.parent_id is not None:
            job.parent = known[job.parent_id]
    return found


def lock_job(job_id: int) -> tuple[Run, Job]:
    """The job's run, then the job. Raises NotFound."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT run_id FROM ci_job WHERE id = %s", [job_id])
        row = cursor.fetchone()
    if row is None:
        raise NotFound("There is no such job; its run may have been deleted.")
    run_id: int = row[0]
    run = lock_run(run_id)
    job = Job.objects.select_for_update(no_key=True).filter(pk=job_id).order_by("pk").first()
    if job is None:
        raise NotFound("There is no such job; its run may have been deleted.")
    job.run = run
    return run, job


def lock_runner(runner_id: int) -> Runner:
    try:
        return Runner.objects.select_for_update(no_key=True).get(pk=runner_id)
    except Runner.DoesNotExist:
        raise NotFound("There is no such runner; it may have been removed.") from None


def lock_free_runner(seen: Runner) -> Runner | None:
    """The runner as it was seen, locked; None where it has changed since, or somebody else has locked it."""
    free = Runner.objects.select_for_update(no_key=True, skip_locked=True)
    return free.filter(pk=seen.pk, version=seen.version).first()


def lock_set(set_id: int) -> RunnerSet:
    try:
        return RunnerSet.objects.select_for_update(no_key=True).get(pk=set_id)
    except RunnerSet.DoesNotExist:
        raise NotFound("There is no such runner set; it may have been deleted.") from None


def check_token(job: Job | Held, token: Proof) -> None:
    """Under the lock: a token, or an assignment, that was replaced between look-up and lock proves nothing any more."""
    if isinstance(token, Holder):
        holds = (job.runner_id, job.assignment) == (token.runner_id, token.assignment)
    else:
        holds = same_token(job.token_hash, token)
    if not holds:
        raise Unauthenticated()


def check_runner_token(runner: Runner, token_hash: str | None) -> None:
    """Under the lock: each process of a set's runner has a credential of its own. None: nobody's in particular."""
    if token_hash is not None and runner.token_hash != token_hash:
        raise Unauthenticated()


def check_version(row: Run | Job | Runner | RunnerSet, version: int | None) -> None:
    """Refuse a decision that was taken on an older version of the row than the one now locked."""
    if version is not None and row.version != version:
        raise Conflict(f"{row} has changed meanwhile: look again, then decide.")

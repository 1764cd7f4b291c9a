"""What does the product's own database say? Read in a process of its own, whose Django belongs to that database."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from django_q.models import OrmQ

from ci.models import ACTIVE_STATES, Event, Job, JobState, Log, LogChunk, Run, Runner, RunnerPhase, RunState
from ci.storage import logs
from tests.races import invariants

# Events that tell of no move: the state stays.
STAYS = frozenset({"cancel_requested", "claim_repeated"})


def print_all(repository: str) -> None:
    """As JSON: the broken rules, the tasks that are left, and the rows of a repository (`owner/name`)."""
    owner, _, name = repository.partition("/")
    runs = Run.objects.filter(repository__owner__username=owner, repository__name=name).order_by("pk")
    jobs = Job.objects.filter(run__in=runs).select_related("run").order_by("pk")
    found = {
        "broken": list(broken(list(runs), list(jobs))),
        "tasks": OrmQ.objects.count(),
        "runs": [_run(run) for run in runs],
        "jobs": [_job(job) for job in jobs],
    }
    json.dump(found, sys.stdout)


def broken(runs: list[Run], jobs: list[Job]) -> Iterator[str]:
    """A sentence for each rule that rows break once everything has ended."""
    try:
        invariants.check_rows()
    except AssertionError as error:
        yield str(error)
    for runner in Runner.objects.exclude(phase=RunnerPhase.PENDING).order_by("pk"):
        yield f"{runner} is {runner.phase}, and nothing runs"
    for run in runs:
        ends = Event.objects.filter(run=run, job=None, to_state=RunState.ENDED).count()
        if ends != run.attempt:
            yield f"run {run.pk} ended {ends} times in {run.attempt} attempts"
    for job in jobs:
        yield from (f"job {job.pk} ({job.name} of run {job.run_id}): {problem}" for problem in _broken_of(job))


def _broken_of(job: Job) -> Iterator[str]:
    moves = list(Event.objects.filter(job=job).exclude(kind__in=STAYS).order_by("pk"))
    if job.carried_from_id is not None:
        if moves:
            yield "a copy of an earlier attempt's has events"
        return
    ends = [move for move in moves if move.to_state == JobState.ENDED]
    if len(ends) != 1 or moves[-1] is not ends[0]:
        yield f"its events say {[(move.kind, move.from_state, move.to_state) for move in moves]}"
    for before, after in pairwise(moves):
        if before.to_state != after.from_state:
            yield f"it went from {after.from_state} after it had gone to {before.to_state}"
    claims = sum(move.to_state == JobState.ASSIGNED for move in moves)
    if claims != job.assignment:
        yield f"it was claimed {claims} times and counts {job.assignment} assignments"
    if job.state in ACTIVE_STATES or job.poll_id:
        yield f"it is {job.state}"
    yield from _broken_steps(job)


def _broken_steps(job: Job) -> Iterator[str]:
    at = 0
    length = logs.length(job.pk)
    for step in job.steps.order_by("number"):
        if step.state != "ended":
            yield f"step {step.number} is {step.state}"
        if step.line_count:
            if step.first_line < at or step.first_line + step.line_count > length:
                yield f"step {step.number} claims lines {step.first_line} + {step.line_count} of {length}"
            at = step.first_line + step.line_count
    log = Log.objects.filter(job=job).first()
    kept = sum(block.count(b"\n") for block in logs.raw(job.pk))
    if log is not None and kept != log.lines:
        yield f"its log counts {log.lines} lines and has {kept}"
    if log is not None and log.blob and not log.blob.endswith(".part") and LogChunk.objects.filter(job=job).exists():
        yield "its log is in a file and in rows"


def _run(run: Run) -> dict[str, Any]:
    names = ("id", "workflow_path", "title", "attempt", "state", "conclusion", "ref", "sha", "event")
    found = {name: getattr(run, name) for name in names}
    return {**found, "started": _stamp(run.started_at), "ended": _stamp(run.ended_at)}


def _job(job: Job) -> dict[str, Any]:
    names = ("id", "run_id", "parent_id", "attempt", "key", "name", "needs", "state", "conclusion", "cancel_reason")
    more = ("end_note", "runner_name", "assignment", "carried_from_id", "outputs", "matrix")
    found = {name: getattr(job, name) for name in (*names, *more)}
    moves = Event.objects.filter(job=job).select_related("runner").order_by("pk")
    return {
        **found,
        "path": job.run.workflow_path,
        "events": [
            {"kind": move.kind, "to": move.to_state, "at": _stamp(move.created_at), "detail": move.detail}
            for move in moves
        ],
        "steps": [
            {"name": step.name, "first": step.first_line, "count": step.line_count, "conclusion": step.conclusion}
            for step in job.steps.order_by("number")
        ],
        "log": b"".join(logs.raw(job.carried_from_id or job.pk)).decode(),
    }


def _stamp(at: Any) -> float | None:
    return at.timestamp() if at is not None else None

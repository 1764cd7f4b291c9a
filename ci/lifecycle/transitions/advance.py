"""What follows from what a run's jobs are now? Needs released, legs made, siblings stopped, the run concluded.

Everything here is a function of the rows, read under the run's lock: run it once too often and nothing changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from ci.lifecycle import contexts, events
from ci.lifecycle.announcing import announce
from ci.lifecycle.groups import group_of, settle_later
from ci.lifecycle.matching import label_set_of
from ci.lifecycle.transitions.guard import lock_jobs
from ci.lifecycle.transitions.moves import ask_to_stop, end, queue, write
from ci.models import (
    ACTIVE_STATES,
    CancelReason,
    Conclusion,
    Hold,
    Job,
    JobState,
    Run,
    RunConclusion,
    RunState,
)
from ci.workflow import MatrixError, PlanError, legs, needs
from ci.workflow.expressions import ExpressionError

Legs = dict[str, list[Job]]


def advance(run: Run) -> None:
    """Bring a locked run to rest: nothing that can go is left behind, and a run whose jobs have all ended has ended."""
    if run.state == RunState.ENDED:
        return
    jobs = lock_jobs(run)
    if run.state == RunState.WAITING:
        if not all(job.is_ended for job in jobs):
            return
    else:
        while _stop_siblings(jobs) or _release(run, jobs):
            pass
    _derive(run, jobs)


def by_key(jobs: Sequence[Job]) -> Legs:
    """A job's legs, by its key, in matrix order."""
    groups: Legs = defaultdict(list)
    for job in jobs:
        groups[job.key].append(job)
    return dict(groups)


def results(groups: Mapping[str, Sequence[Job]]) -> dict[str, str | None]:
    """A job's result over its legs; None until all have ended."""
    return {
        key: needs.result([(str(leg.conclusion), leg.continue_on_error) for leg in group])
        if all(leg.is_ended for leg in group)
        else None
        for key, group in groups.items()
    }


def _stop_siblings(jobs: Sequence[Job]) -> bool:
    moved = False
    for group in by_key(jobs).values():
        failed = next((leg for leg in group if _breaks_its_matrix(leg)), None)
        if failed is None:
            continue
        for leg in group:
            if leg.is_ended or leg.cancel_reason:
                continue
            moved = True
            stop(leg, CancelReason.FAIL_FAST, note=f"{failed.name} failed, and fail-fast is on.")
    return moved


def _breaks_its_matrix(leg: Job) -> bool:
    return leg.conclusion == Conclusion.FAILURE and leg.fail_fast and leg.matrix_total > 1 and not leg.continue_on_error


def stop(job: Job, reason: CancelReason, *, note: str, actor: Any = None) -> None:
    """End a locked job that no runner has; ask one that a runner has to stop."""
    if job.state in ACTIVE_STATES:
        ask_to_stop(job, reason, actor=actor)
    else:
        end(
            job,
            Conclusion.CANCELLED,
            kind="cancelled",
            note=note,
            actor=actor,
            cancel_reason=reason,
            cancel_requested_at=timezone.now(),
            cancelled_by=actor,
        )


def _release(run: Run, jobs: list[Job]) -> bool:
    """One pass over the blocked jobs; whether anything moved, so that another pass may find more."""
    moved = False
    for job in list(jobs):
        if job.state != JobState.BLOCKED or job.hold == Hold.CONCURRENCY:
            continue
        if not job.expanded:
            groups = by_key(jobs)
            known = results(groups)
            if all(known.get(key) is not None for key in job.needs):
                jobs.extend(_expand(run, job, groups, known))
                moved = True
        elif _may_queue(job, by_key(jobs)[job.key]):
            _enter(run, job)
            moved = True
        elif job.hold != Hold.MAX_PARALLEL:
            write(job, hold=Hold.MAX_PARALLEL)
    return moved


def _may_queue(job: Job, siblings: Sequence[Job]) -> bool:
    if job.max_parallel is None:
        return True
    taken = sum(leg.state in (JobState.QUEUED, *ACTIVE_STATES) or leg.hold == Hold.CONCURRENCY for leg in siblings)
    return taken < job.max_parallel


def _enter(run: Run, job: Job) -> None:
    if job.concurrency_group_id is None:
        queue(job)
        return
    write(job, hold=Hold.CONCURRENCY, entered_group_at=timezone.now())
    events.record("held", job=job, from_state=job.state, to_state=job.state, detail=Hold.CONCURRENCY.label)
    settle_later(job.concurrency_group_id)


def _expand(run: Run, job: Job, groups: Legs, known: Mapping[str, str | None]) -> list[Job]:
    """Decide a job whose needs have ended: skipped, failed to plan, or one row a leg. Returns the rows added."""
    wanted: dict[str, Sequence[str]] = {key: group[0].needs for key, group in groups.items()}
    ancestors = {key: str(known[key]) for key in needs.ancestors(wanted)[job.key]}
    try:
        expansion = legs.expand(
            job.definition,
            contexts={
                "github": contexts.github(run),
                "inputs": run.inputs,
                "vars": contexts.variables(run.repository),
                "needs": contexts.needs(job, groups, known),
            },
            ancestors=ancestors,
            cancelled=Conclusion.CANCELLED in ancestors.values(),
            key=job.key,
        )
    except (ExpressionError, MatrixError, PlanError) as error:
        end(job, Conclusion.FAILURE, kind="unpreparable", note=f"The job could not be planned: {error}")
        return []
    if expansion.skipped:
        end(job, Conclusion.SKIPPED, kind="skipped", note="Its condition is false.")
        return []
    return _make_legs(run, job, expansion.legs)


def _make_legs(run: Run, job: Job, made: Sequence[legs.Leg]) -> list[Job]:
    added = []
    for leg in made:
        fields = _leg_fields(run, leg)
        if leg.index == 0:
            write(job, **fields)
        else:
            copied = {name: getattr(job, name) for name in ("run", "attempt", "key", "needs", "level", "definition")}
            added.append(Job(**copied, hold=Hold.NEEDS, **fields))
    return Job.objects.bulk_create(added)


def _leg_fields(run: Run, leg: legs.Leg) -> dict[str, Any]:
    group = group_of(run.repository_id, leg.concurrency.group) if leg.concurrency else None
    return {
        "name": leg.name[:500],
        "expanded": True,
        "matrix": leg.matrix,
        "matrix_index": leg.index,
        "matrix_total": leg.total,
        "fail_fast": leg.fail_fast,
        "max_parallel": leg.max_parallel,
        "continue_on_error": leg.continue_on_error,
        "timeout_minutes": leg.timeout_minutes,
        "runs_on": list(leg.labels),
        "label_set": label_set_of(leg.labels),
        "concurrency_group": group,
        "cancel_in_progress": bool(leg.concurrency and leg.concurrency.cancel_in_progress),
        "queue_all": bool(leg.concurrency and leg.concurrency.queue == "max"),
    }


def _derive(run: Run, jobs: Sequence[Job]) -> None:
    """The run's state is what its jobs say."""
    if all(job.is_ended for job in jobs):
        _conclude(run, conclusion_of(jobs))
        return
    begun = any(job.state == JobState.RUNNING or (job.is_ended and job.started_at) for job in jobs)
    state = RunState.RUNNING if begun else RunState.QUEUED
    if run.state != state:
        before = run.state
        started_at = run.started_at or (timezone.now() if begun else None)
        write(run, state=state, started_at=started_at)
        events.record(f"run_{state}", run=run, from_state=before, to_state=state)
        if state == RunState.RUNNING:
            announce(run, "in_progress")


def conclusion_of(jobs: Sequence[Job]) -> RunConclusion:
    """failure, else cancelled, else success, else skipped: over what counts, a tolerated failure being a success."""
    outcomes = set(results(by_key(jobs)).values())
    for conclusion in (RunConclusion.FAILURE, RunConclusion.CANCELLED, RunConclusion.SUCCESS):
        if conclusion in outcomes:
            return conclusion
    return RunConclusion.SKIPPED


def _conclude(run: Run, conclusion: RunConclusion) -> None:
    before = run.state
    write(run, state=RunState.ENDED, conclusion=conclusion, ended_at=timezone.now())
    events.record("run_ended", run=run, from_state=before, to_state=RunState.ENDED, detail=conclusion.label)
    announce(run, "completed")
    if run.concurrency_group_id is not None:
        settle_later(run.concurrency_group_id)

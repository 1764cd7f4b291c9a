"""What follows from what a run's jobs are now? Needs released, siblings stopped, calls ended, the run concluded.

Everything here is a function of the rows, read under the run's lock: run it once too often and nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.announcing import announce
from ci.lifecycle.groups import settle_later
from ci.lifecycle.scopes import Legs, by_key, by_scope, results
from ci.lifecycle.transitions.expanding import end_call, enter, expand, goes_straight
from ci.lifecycle.transitions.guard import lock_jobs
from ci.lifecycle.transitions.moves import queue_all, write
from ci.lifecycle.transitions.stopping import stop_what_follows
from ci.models import ACTIVE_STATES, IN_TURN, Hold, Job, JobState, Run, RunConclusion, RunState


def advance(run: Run) -> None:
    """Bring a locked run to rest: nothing that can go is left behind, and a run whose jobs have all ended has ended."""
    if run.state == RunState.ENDED:
        return
    jobs = lock_jobs(run)
    if run.state == RunState.WAITING:
        if not all(job.is_ended for job in jobs):
            return
    else:
        while stop_what_follows(jobs) or _release(run, jobs) or _end_calls(run, jobs):
            pass
    _derive(run, jobs)


def _release(run: Run, jobs: list[Job]) -> bool:
    """One pass over the blocked jobs; whether anything moved, so that another pass may find more."""
    moved = False
    calling = {job.pk for job in jobs if job.hold == Hold.CALLED}
    for call_id, scope in by_scope(jobs).items():
        if call_id is not None and call_id not in calling:  # of a call that a re-run repeats in part, and that waits
            continue
        groups = by_key(scope)
        known = results(groups)
        # A matrix of hundreds of legs goes at once, not leg by leg.
        straight = [job for job in scope if _waits_for_its_turn(job) and goes_straight(job)]
        queue_all(straight)
        moved |= bool(straight)
        for job in scope:
            if not _waits_for_its_turn(job):
                continue
            if not job.expanded:
                if all(known.get(key) is not None for key in job.needs):
                    jobs.extend(expand(run, job, groups, known))
                    moved = True
            elif _may_go(job, groups):
                jobs.extend(enter(run, job))
                moved = True
            elif job.hold != Hold.MAX_PARALLEL:
                write(job, hold=Hold.MAX_PARALLEL)
    return moved


def _waits_for_its_turn(job: Job) -> bool:
    return job.state == JobState.BLOCKED and job.hold not in IN_TURN


def _may_go(job: Job, groups: Legs) -> bool:
    if job.max_parallel is None:
        return True
    going = [leg for leg in groups[job.key] if leg.state in (JobState.QUEUED, *ACTIVE_STATES) or leg.hold in IN_TURN]
    return len(going) < job.max_parallel


def _end_calls(run: Run, jobs: Sequence[Job]) -> bool:
    moved = False
    scopes = by_scope(jobs)
    for call in jobs:
        if call.hold == Hold.CALLED:
            groups = by_key(scopes.get(call.pk, ()))
            known = results(groups)
            if all(result is not None for result in known.values()):
                end_call(run, call, groups, known)
                moved = True
    return moved


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
    outcomes = set(results(by_key([job for job in jobs if job.parent_id is None])).values())
    for conclusion in (RunConclusion.FAILURE, RunConclusion.CANCELLED, RunConclusion.SUCCESS):
        if conclusion in outcomes:
            return conclusion
    return RunConclusion.SKIPPED


def _conclude(run: Run, conclusion: RunConclusion) -> None:
    before = run.state
    write(run, state=RunState.ENDED, conclusion=conclusion, ended_at=timezone.now(), deadline_at=None)
    events.record("run_ended", run=run, from_state=before, to_state=RunState.ENDED, detail=conclusion.label)
    announce(run, "completed")
    if run.concurrency_group_id is not None:
        settle_later(run.concurrency_group_id)

"""Who of a concurrency group may go? One at a time; of those who wait the newest, or up to 100 where it says so.

Source: GitHub docs, "Control the concurrency of workflows and jobs".
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeGuard

from django.db.models import F, Q

from ci.lifecycle import events
from ci.lifecycle.groups import break_later, holding_jobs, holding_runs, waits_for
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.circles import circle
from ci.lifecycle.transitions.expanding import go
from ci.lifecycle.transitions.guard import guarded, lock_group, lock_run
from ci.lifecycle.transitions.moves import write
from ci.lifecycle.transitions.stop_run import stop_run
from ci.lifecycle.transitions.stopping import stop
from ci.models import CancelReason, ConcurrencyGroup, Hold, Job, JobState, Run, RunState

Entrant = Run | Job

# GitHub's limit for `queue: max`.
MAX_WAITING = 100

WAITING_RUN = Q(state=RunState.WAITING, approval_pending=False)


@guarded
def settle(group_id: int) -> None:
    """Supersede, then let the next one in. A function of the rows: once too often changes nothing."""
    try:
        group = lock_group(group_id)
    except ConcurrencyGroup.DoesNotExist:
        return
    concerned = _runs_concerned(group)
    for run_id in sorted(concerned):
        lock_run(run_id)
    waiting = _waiting(group, concerned)
    # A free place goes to who came first, as if each arrival had been settled at once.
    if waiting and not _holders(group):
        _let_in(waiting.pop(0))
    if not waiting:
        return
    *older, newest = waiting
    if _queues_all(newest):
        for entrant in waiting[MAX_WAITING:]:
            _turn_away(entrant, f"{MAX_WAITING} wait in its concurrency group already, the most there can be.")
    else:
        for entrant in older:
            _supersede(entrant, newest)
    if _cancels_holder(newest):
        for holder in _holders(group):
            _supersede(holder, newest)
        if not _holders(group):
            _let_in(newest)
    if circle(group.pk):
        break_later(group.pk)


def _runs_concerned(group: ConcurrencyGroup) -> set[int]:
    runs = Run.objects.filter(concurrency_group=group).exclude(state=RunState.ENDED)
    jobs = Job.objects.filter(Q(concurrency_group=group) | Q(called_group=group)).exclude(state=JobState.ENDED)
    return set(runs.values_list("id", flat=True)) | set(jobs.values_list("run_id", flat=True))


def _waiting(group: ConcurrencyGroup, locked: set[int]) -> list[Entrant]:
    """Of the locked runs. A job that has come since then has asked for a settling of its own, which locks its run."""
    runs = Run.objects.filter(WAITING_RUN, concurrency_group=group, pk__in=locked)
    return sorted([*runs, *Job.objects.filter(waits_for(group.pk), run__in=locked)], key=_arrival)


def _arrival(entrant: Entrant) -> tuple[datetime, int]:
    return entrant.entered_group_at or entrant.created_at, entrant.pk


def _queues_all(newest: Entrant) -> bool:
    return newest.called_queue_all if _is_held_call(newest) else newest.queue_all


def _cancels_holder(newest: Entrant) -> bool:
    return newest.called_cancel_in_progress if _is_held_call(newest) else newest.cancel_in_progress


def _is_held_call(entrant: Entrant) -> TypeGuard[Job]:
    return isinstance(entrant, Job) and entrant.hold == Hold.CALLED_GROUP


def _holders(group: ConcurrencyGroup) -> list[Entrant]:
    runs = Run.objects.filter(holding_runs(group.pk))
    return [*runs, *Job.objects.filter(holding_jobs(group.pk))]


def _supersede(entrant: Entrant, by: Entrant) -> None:
    name = by if isinstance(by, Run) else by.run
    _turn_away(entrant, f"{name} took its place in the concurrency group.")


def _turn_away(entrant: Entrant, note: str) -> None:
    if isinstance(entrant, Run):
        stop_run(entrant, CancelReason.SUPERSEDED, note=note)
        return
    job = Job.objects.select_for_update(no_key=True).get(pk=entrant.pk)
    if not job.is_ended and not job.cancel_reason:
        stop(job, CancelReason.SUPERSEDED, note=note)
        advance(job.run)


def _let_in(entrant: Entrant) -> None:
    if isinstance(entrant, Run):
        start_run(entrant)
        return
    # Not locked: it is blocked, and such a one moves only under the lock of its run.
    job = Job.objects.get(pk=entrant.pk)
    go(job.run, job)
    advance(job.run)


def start_run(run: Run) -> None:
    """A locked run that waited goes: its jobs may be released."""
    write(run, state=RunState.QUEUED)
    Job.objects.filter(run=run, attempt=run.attempt, hold=Hold.RUN).update(hold=Hold.NEEDS, version=F("version") + 1)
    events.record("run_queued", run=run, from_state=RunState.WAITING, to_state=RunState.QUEUED)
    advance(run)

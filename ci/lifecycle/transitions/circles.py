"""Do some wait for the groups that the others hold, in a circle, for ever? Then the one that came last gives way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ci.lifecycle.groups import holding_jobs, holding_runs, waits_for
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.guard import guarded, lock_group, lock_jobs, lock_run
from ci.lifecycle.transitions.moves import end
from ci.models import Conclusion, Hold, Job, JobState, Run


@guarded
def break_circle(group_id: int) -> None:
    """Cancel the newest waiter of a circle through this group. Once too often changes nothing."""
    found = circle(group_id)
    if not found:
        return
    for each in sorted({_wanted(job) for job in found}):
        lock_group(each)
    runs = {run_id: lock_run(run_id) for run_id in sorted({job.run_id for job in found})}
    # What was found without the locks may have gone on meanwhile.
    if {job.pk for job in circle(group_id)} != {job.pk for job in found}:
        return
    newest = max(found, key=lambda job: (job.entered_group_at or job.created_at, job.pk))
    run = runs[newest.run_id]
    job = next(job for job in lock_jobs(run) if job.pk == newest.pk)
    others = " and ".join(sorted({str(runs[other.run_id]) for other in found if other.run_id != run.pk})) or "This run"
    note = (
        f"It waits for the concurrency group {_name(job)} for ever: what holds that waits, by way of {others}, "
        "for a group that this run holds. Take the groups in the same order everywhere."
    )
    end(job, Conclusion.CANCELLED, kind="cancelled", note=note)
    advance(run)


def circle(group_id: int) -> list[Job]:
    """The waiting jobs of a circle through this group; empty where there is none.

    From a group the way goes to the jobs that wait inside of what holds it, and from each to the group it waits for.
    """
    if not Job.objects.filter(waits_for(group_id)).exists():
        return []
    reached: dict[int, list[Job]] = {group_id: []}
    front = [group_id]
    while front:
        group = front.pop()
        for job in _waiting_inside(group):
            wanted = _wanted(job)
            if wanted == group_id:
                return [*reached[group], job]
            if wanted not in reached:
                reached[wanted] = [*reached[group], job]
                front.append(wanted)
    return []


def _waiting_inside(group_id: int) -> Iterable[Job]:
    held = Job.objects.filter(state=JobState.BLOCKED, hold__in=[Hold.CONCURRENCY, Hold.CALLED_GROUP])
    for run in Run.objects.filter(holding_runs(group_id)):
        yield from held.filter(run=run, attempt=run.attempt)
    for holder in Job.objects.filter(holding_jobs(group_id), state=JobState.BLOCKED):
        if holder.hold == Hold.CALLED_GROUP:
            yield holder
        else:
            yield from held.filter(pk__in=_inside(holder))


def _inside(call: Job) -> set[int]:
    """The jobs of a call, and of the calls among them."""
    rows: Sequence[tuple[int, int | None]] = list(
        Job.objects.filter(run=call.run_id, attempt=call.attempt).values_list("id", "parent_id")
    )
    found: set[int] = set()
    front = {call.pk}
    while front:
        front = {pk for pk, parent_id in rows if parent_id in front}
        found |= front
    return found


def _wanted(job: Job) -> int:
    group_id = job.called_group_id if job.hold == Hold.CALLED_GROUP else job.concurrency_group_id
    assert group_id is not None
    return group_id


def _name(job: Job) -> str:
    return str(job.called_group if job.hold == Hold.CALLED_GROUP else job.concurrency_group)

"""Why does a job not run yet? One sentence for the person who waits."""

from __future__ import annotations

from collections.abc import Sequence

from ci.lifecycle import demand, set_waiting, wanting
from ci.lifecycle.matching import normalised, runners_in_scope
from ci.models import ACTIVE_STATES, TERMINAL_PHASES, Hold, Job, JobState, Runner, RunnerSet


def why(job: Job) -> str:
    """What the job waits for; "" once it runs or has ended."""
    if job.state == JobState.BLOCKED:
        return _why_blocked(job)
    if job.state == JobState.ASSIGNED:
        return f"Given to runner {job.runner_name}, which has not begun yet."
    return _why_queued(job) if job.state == JobState.QUEUED else ""


def _why_blocked(job: Job) -> str:
    if job.hold == Hold.NEEDS and job.needs:
        unfinished = Job.objects.filter(run=job.run_id, attempt=job.attempt, parent=job.parent_id, key__in=job.needs)
        names = unfinished.exclude(state=JobState.ENDED).values_list("key", flat=True).distinct()
        return f"Waits for {', '.join(sorted(names)) or 'its needs'}."
    if job.hold == Hold.MAX_PARALLEL:
        return f"Waits for a place: max-parallel is {job.max_parallel}."
    if job.hold == Hold.CONCURRENCY and job.concurrency_group is not None:
        return f"Waits for the concurrency group {job.concurrency_group}."
    if job.hold == Hold.CALLED_GROUP and job.called_group is not None:
        return f"Waits for the concurrency group {job.called_group} of the workflow that it calls."
    if job.hold == Hold.CALLED:
        return f"{Hold.CALLED.label}."
    if job.run.approval_pending:
        return "Waits until somebody with write access approves the run."
    if job.run.concurrency_group is not None:
        return f"Its run waits for the concurrency group {job.run.concurrency_group}."
    return Hold(job.hold).label + "."


def _why_queued(job: Job) -> str:
    serving = wanting.sets_of(job)
    full = {one.pk for one in serving if job.run.repository_id in demand.full_repositories(one)}
    # An idle runner of a set is no help to a job that the set may not run, or not yet.
    able = {None, *(one.pk for one in serving if one.pk not in full)}
    in_scope = runners_in_scope(job.run).exclude(phase__in=TERMINAL_PHASES)
    runners = [runner for runner in in_scope if runner.runner_set_id in able]
    if serving and not _any_is_free(runners, job):
        hopeful = [one for one in serving if one.pk not in full]
        return _why_of_set(hopeful[0]) if hopeful else _why_full(serving[0])
    if not runners:
        return "There is no runner for this repository: register one."
    wanted = normalised(job.runs_on)
    fitting = [runner for runner in runners if set(wanted) <= set(normalised(runner.labels))]
    if not fitting:
        return _missing(wanted, runners)
    online = [runner for runner in fitting if runner.is_online]
    if not online:
        return f"{_count(fitting, 'fits', 'fit')}, none is online."
    free = [runner for runner in online if not runner.paused]
    if not free:
        return (
            f"{_count(online, 'fits', 'fit')}, all are paused." if len(online) > 1 else "1 runner fits, it is paused."
        )
    busy = set(Job.objects.filter(runner__in=free, state__in=ACTIVE_STATES).values_list("runner", flat=True))
    if len(busy) == len(free):
        all_of_them = {1: "it is", 2: "both are"}.get(len(free), "all are")
        return f"{_count(free, 'fits', 'fit')}, {all_of_them} busy."
    return "A fitting runner is free and should take it any moment."


def _any_is_free(runners: Sequence[Runner], job: Job) -> bool:
    wanted = set(normalised(job.runs_on))
    ready = [one.pk for one in runners if one.is_online and not one.paused and wanted <= set(normalised(one.labels))]
    return len(ready) > Job.objects.filter(runner__in=ready, state__in=ACTIVE_STATES).count()


def _why_full(runner_set: RunnerSet) -> str:
    limit = runner_set.maximum_per_repository
    return f"Runner set {runner_set} runs as many jobs of this repository as it may at once: {limit}."


def _why_of_set(runner_set: RunnerSet) -> str:
    return set_waiting.for_reader(runner_set, set_waiting.counts(demand.look(runner_set)))


def _missing(wanted: Sequence[str], runners: Sequence[Runner]) -> str:
    offered = {label for runner in runners for label in normalised(runner.labels)}
    missing = [label for label in wanted if label not in offered]
    if len(missing) == 1:
        return f"No runner has the label {missing[0]}."
    if missing:
        return f"No runner has the labels {', '.join(missing)}."
    return f"No runner has all of the labels {', '.join(wanted)}."


def _count(runners: Sequence[Runner], one: str, many: str) -> str:
    return f"{len(runners)} runner{'s' if len(runners) != 1 else ''} {many if len(runners) != 1 else one}"

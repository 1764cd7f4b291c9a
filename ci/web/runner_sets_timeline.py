"""What became of each runner of a set, from the job that was queued to the process that is gone?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from ci.models import ACTIVE_STATES, Job, LaunchAttempt, Runner, RunnerPhase

# Of one runner: more attempts than the launcher makes.
MOST_ATTEMPTS = 10


@dataclass(frozen=True)
class Moment:
    """`after`: since the moment before it; None for the first, and for one that is yet to come."""

    name: str
    at: datetime | None
    after: timedelta | None


@dataclass(frozen=True)
class Lived:
    runner: Runner
    job: Job | None
    moments: list[Moment]
    attempts: list[LaunchAttempt]
    look: str
    word: str


def lives(runners: Sequence[Runner]) -> list[Lived]:
    """For the runners of one page; as many queries for one as for a hundred."""
    jobs = _jobs(runners)
    attempts: dict[int, list[LaunchAttempt]] = {runner.pk: [] for runner in runners}
    for attempt in LaunchAttempt.objects.filter(runner__in=attempts).order_by("runner", "-number"):
        attempts[attempt.runner_id].append(attempt)
    return [_lived(runner, jobs.get(runner.pk), attempts[runner.pk][:MOST_ATTEMPTS][::-1]) for runner in runners]


def _jobs(runners: Iterable[Runner]) -> dict[int, Job]:
    """The job of each runner; a job that went on elsewhere is not shown as this one's."""
    found = Job.objects.filter(runner__in=[runner.pk for runner in runners]).order_by("pk")
    found = found.select_related("run__repository__owner").defer("definition", "outputs", "call_inputs", "run__payload")
    return {job.runner_id: job for job in found if job.runner_id is not None}


def _lived(runner: Runner, job: Job | None, attempts: list[LaunchAttempt]) -> Lived:
    look, word = _state(runner, job)
    return Lived(runner, job, _moments(runner, job), attempts, look, word)


def _state(runner: Runner, job: Job | None) -> tuple[str, str]:
    if runner.is_done:
        look = {RunnerPhase.SUCCEEDED: "success", RunnerPhase.FAILED: "failure"}.get(RunnerPhase(runner.phase))
        gone = "" if runner.stopped_at else ", ending"
        return look or "skipped", f"{runner.get_phase_display()}{gone}"
    if runner.deleting_at is not None:
        return "cancelling", "Ending"
    if job is not None and job.state in ACTIVE_STATES:
        return "running", "Busy"
    if runner.registered_at is not None:
        return "success", "Idle"
    if runner.next_attempt_at is not None and runner.next_attempt_at > timezone.now():
        return "waiting", "Waits to try again"
    return "queued", "Starting"


def _moments(runner: Runner, job: Job | None) -> list[Moment]:
    """In the order in which they came; a set that keeps idle runners has one before its job is queued."""
    came = [
        ("Queued", job.queued_at if job else None),
        ("Made", runner.created_at),
        ("Launched", runner.launched_at),
        ("Registered", runner.registered_at),
        ("Assigned", job.assigned_at if job else None),
        ("Started", job.started_at if job else None),
        ("Job ended", job.ended_at if job else None),
        ("Ended", runner.stopped_at or runner.ended_at),
    ]
    known = [(name, at) for name, at in came if at is not None]
    known.sort(key=lambda moment: moment[1])
    moments = []
    before: datetime | None = None
    for name, at in known:
        moments.append(Moment(name, at, at - before if before else None))
        before = at
    if runner.is_done:
        return moments
    have = {name for name, _ in known}
    return moments + [Moment(name, None, None) for name, _ in came if name not in have and name != "Queued"]

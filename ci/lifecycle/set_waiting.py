"""What has a runner set, and why does nothing start? Numbers and one sentence for its owner."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min
from django.utils import timezone

from ci.lifecycle import demand
from ci.lifecycle.leading import SCALER_LOCK, has_leader
from ci.lifecycle.matching import fitting_label_sets
from ci.models import Job, JobState, LaunchAttempt, Runner, RunnerSet

NO_SCALER = "No scaler is running, so no runner is started or stopped: start one with manage.py scale."


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Runners by what they do; `ending`: their processes are not gone, so they take up room. `queued`: jobs."""

    queued: int
    busy: int
    idle: int
    starting: int
    paused: int
    ending: int

    @property
    def alive(self) -> int:
        return self.busy + self.idle + self.starting + self.paused + self.ending


def counts(sight: demand.Sight) -> Counts:
    useful = sight.useful
    busy = sum(runner.busy for runner in useful)
    idle = sum(runner.up and not runner.busy for runner in useful)
    paused = sum(runner.is_spared for runner in sight.runners)
    return Counts(
        queued=sight.queued,
        busy=busy,
        idle=idle,
        starting=len(useful) - busy - idle,
        paused=paused,
        ending=len(sight.runners) - len(useful) - paused,
    )


def for_owner(runner_set: RunnerSet, has: Counts) -> str:
    """Why nothing starts, or what does."""
    if runner_set.phase == RunnerSet.Phase.DELETING:
        return f"It is being deleted and takes no more jobs: it waits for {_waits_for(has)}."
    if runner_set.phase == RunnerSet.Phase.OUTDATED:
        return "It is parked and starts no runner until it is recovered, or has another launcher or template."
    if not has_leader(SCALER_LOCK):
        return NO_SCALER
    if not runner_set.maximum:
        return "Its maximum is 0, so it starts no runner."
    return _held_up(runner_set, has) or _at_work(runner_set, has)


def for_reader(runner_set: RunnerSet, has: Counts) -> str:
    """Why a job that it may run has no runner of it yet, for everybody who may read the job: no word of its processes
    or its engine."""
    if runner_set.phase == RunnerSet.Phase.OUTDATED:
        return f"Runner set {runner_set} starts no runners: those that it started were outdated."
    if not has_leader(SCALER_LOCK):
        return f"Runner set {runner_set} starts no runners: no scaler is running. Start one with manage.py scale."
    if not runner_set.maximum:
        return f"Runner set {runner_set} starts no runners: its maximum is 0."
    if runner_set.trouble or runner_set.is_troubled:
        return f"Runner set {runner_set} cannot start runners now. Its page says why, to those who administer it."
    if has.alive >= runner_set.maximum:
        return f"Runner set {runner_set} has as many runners as it may ({runner_set.maximum}){_doing(has)}."
    if has.idle and not has.starting and has.idle >= has.queued:
        return f"Runner set {runner_set} has {_many(has.idle, 'idle runner')}, not heard of lately."
    if has.starting:
        return f"Runner set {runner_set} is starting {_many(has.starting, 'runner')}."
    return f"Runner set {runner_set} is about to start a runner."


def _doing(has: Counts) -> str:
    if has.busy == has.alive:
        return ", and all are at work"
    parts = [
        (has.busy, "at work"), (has.starting, "starting"), (has.idle, "not heard of"), (has.paused, "paused"),
        (has.ending, "ending"),
    ]  # fmt: skip
    return ": " + ", ".join(f"{count} {word}" for count, word in parts if count)


def _held_up(runner_set: RunnerSet, has: Counts) -> str:
    now = timezone.now()
    if runner_set.is_troubled and runner_set.troubled_until is not None:
        reason = f" Last: {runner_set.trouble}" if runner_set.trouble else ""
        return f"Its launches keep failing: until {_moment(runner_set.troubled_until)} it tries one at a time.{reason}"
    asked = LaunchAttempt.objects.filter(runner__runner_set=runner_set, ended_at=None, handle="").exclude(reason="")
    reasons = list(asked.order_by("-started_at", "-pk").values_list("reason", flat=True))
    if reasons:
        return f"{_many(len(reasons), 'runner')} cannot be started now: {reasons[0]}"
    waiting = Runner.objects.filter(runner_set=runner_set, next_attempt_at__isnull=False)
    found = waiting.aggregate(count=Count("pk"), first=Min("next_attempt_at"))
    if found["count"] and found["count"] == has.starting and found["first"] > now:
        return f"The next launch waits until {_moment(found['first'])}, since the last one failed{_last(runner_set)}"
    return ""


def _at_work(runner_set: RunnerSet, has: Counts) -> str:
    if has.queued and has.alive >= runner_set.maximum and not has.idle:
        ending = f", {has.ending} of which only end" if has.ending else ""
        paused = f", {has.paused} of which {'is' if has.paused == 1 else 'are'} paused" if has.paused else ""
        reached = f"Its maximum of {_many(runner_set.maximum, 'runner')} is reached{paused}{ending}"
        return f"{reached}; {_jobs_wait(has.queued)}."
    if has.starting:
        work = f" for {_many(has.queued, 'waiting job')}" if has.queued else ""
        return f"{_many(has.starting, 'runner is', 'runners are')} starting{work}."
    if has.queued and has.idle:
        return f"{_jobs_wait(has.queued)}: an idle runner takes the next one any moment."
    if has.queued:
        return f"{_jobs_wait(has.queued)}: runners for them are about to start."
    held = _held_by_limit(runner_set)
    if held:
        limit = runner_set.maximum_per_repository
        return f"{_jobs_wait(held)} because their repository may have only {limit} at once here."
    return "Every job that fits it has a runner." if has.busy else "No job that fits it is waiting."


def _held_by_limit(runner_set: RunnerSet) -> int:
    full = demand.full_repositories(runner_set)
    if not full:
        return 0
    jobs = Job.objects.filter(state=JobState.QUEUED, label_set__in=fitting_label_sets(runner_set.labels))
    return len(jobs.filter(run__repository__in=full).order_by().values_list("pk")[: demand.MOST_COUNTED])


def _last(runner_set: RunnerSet) -> str:
    failed = LaunchAttempt.objects.filter(runner__runner_set=runner_set, failed=True).exclude(reason="")
    newest = failed.order_by("-ended_at", "-pk").values_list("reason", flat=True).first()
    return f": {newest}" if newest else "."


def _waits_for(has: Counts) -> str:
    ending = has.alive - has.busy
    parts = [f"{_many(has.busy, 'runner')} with a job"] if has.busy else []
    parts += [f"{_many(ending, 'process', 'processes')} to end"] if ending else []
    return " and ".join(parts) or "the next look of the scaler"


def _jobs_wait(count: int) -> str:
    return _many(count, "job waits", "jobs wait")


def _many(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def _moment(at: datetime) -> str:
    return f"{timezone.localtime(at):%H:%M:%S %Z}"

"""What does Prometheus learn of the runner sets? The names of actions-runner-controller, from the rows at a scrape.

Counters and histograms are those of ci.lifecycle.measures, which never go down. How many series there are depends on
two settings and not on how much work there was: METRICS_SETS and METRICS_REPOSITORIES.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from django.conf import settings
from django.db.models import Count
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from ci.lifecycle import demand
from ci.lifecycle.leading import SCALER_LOCK, has_leader
from ci.lifecycle.measures import BOUNDS, Sum, sums
from ci.models import Conclusion, Measured, Runner, RunnerPhase, RunnerSet

# An owner's name has no parentheses.
INSTANCE = "(instance)"
SET = ["name", "namespace"]
RESULTS = [Conclusion.SUCCESS, Conclusion.FAILURE, Conclusion.CANCELLED]
HISTOGRAMS = {
    Measured.Kind.QUEUE: ("gha_job_queue_duration_seconds", "From queued until a runner of the set had the job."),
    Measured.Kind.STARTUP: ("gha_job_startup_duration_seconds", "From queued until the runner had begun the job."),
    Measured.Kind.EXECUTION: ("gha_job_execution_duration_seconds", "From when a runner had the job until it ended."),
}
Key = tuple[str, ...]


@dataclass(frozen=True)
class Gauges:
    """One set with its jobs and runners, as they are."""

    runner_set: RunnerSet
    sight: demand.Sight
    failed: int
    led: bool

    @cached_property
    def values(self) -> dict[str, tuple[str, int]]:
        """What it is, and how much of it, by the metric's name."""
        useful = self.sight.useful
        busy = sum(runner.busy for runner in useful)
        idle = sum(runner.up and not runner.busy for runner in useful)
        phases = Counter(runner.phase for runner in self.sight.runners)
        listens = self.led and self.runner_set.phase == RunnerSet.Phase.RUNNING
        return {
            "gha_available_jobs": ("Jobs that wait for a runner of the set.", self.sight.queued),
            "gha_assigned_jobs": ("Jobs that wait for the set or that its runners have.", self.sight.assigned),
            "gha_running_jobs": ("Jobs that runners of the set have.", self.sight.active),
            "gha_registered_runners": ("Runners that have asked for a job, idle or busy.", busy + idle),
            "gha_busy_runners": ("Runners that have a job.", busy),
            "gha_idle_runners": ("Runners that wait for a job.", idle),
            "gha_min_runners": ("Idle runners to keep ready.", self.runner_set.minimum),
            "gha_max_runners": ("Runners that may exist at once.", self.runner_set.maximum),
            "gha_desired_runners": ("Runners that the set shall have.", self.runner_set.desired),
            "gha_controller_pending_ephemeral_runners": ("Runners without a job.", phases[RunnerPhase.PENDING]),
            "gha_controller_running_ephemeral_runners": ("Runners in a job.", phases[RunnerPhase.RUNNING]),
            "gha_controller_failed_ephemeral_runners": ("Runners that failed lately.", self.failed),
            "gha_controller_running_listeners": ("1 while a scaler looks after the set.", int(listens)),
        }


class SetCollector(Collector):
    def collect(self) -> Iterator[Metric]:
        shown = list(
            RunnerSet.objects.select_related("owner", "repository__owner").order_by("pk")[: settings.METRICS_SETS]
        )
        yield from _gauges(shown)
        yield from Counted(shown).families()
        left_out = GaugeMetricFamily("gha_hidden_runner_sets", "Sets that have no series: see FORGE_METRICS_SETS.")
        left_out.add_metric([], max(0, RunnerSet.objects.count() - len(shown)))
        yield left_out


def _gauges(shown: list[RunnerSet]) -> Iterable[Metric]:
    failed, led = _failed(shown), has_leader(SCALER_LOCK)
    families: dict[str, GaugeMetricFamily] = {}
    for runner_set in shown:
        gauges = Gauges(runner_set, demand.look(runner_set), failed[runner_set.pk], led)
        for name, (what, value) in gauges.values.items():
            family = families.setdefault(name, GaugeMetricFamily(name, what, labels=SET))
            family.add_metric(_names(runner_set), value)
    return families.values()


def _failed(shown: list[RunnerSet]) -> Counter[int]:
    since = timezone.now() - timedelta(seconds=settings.SCALE_TROUBLE_WINDOW_SECONDS)
    rows = Runner.objects.filter(phase=RunnerPhase.FAILED, ephemeral=True, ended_at__gt=since, runner_set__in=shown)
    return Counter(dict(rows.order_by().values_list("runner_set").annotate(Count("pk"))))


def _names(runner_set: RunnerSet) -> list[str]:
    whole = runner_set.owner_id is None and runner_set.repository_id is None
    return [runner_set.name, INSTANCE if whole else str(runner_set.scope)]


class Counted:
    """Counters and histograms of the sets `shown`."""

    def __init__(self, shown: list[RunnerSet]) -> None:
        self._names = {runner_set.pk: _names(runner_set) for runner_set in shown}
        self._by_repository = settings.METRICS_REPOSITORIES > 0
        self._sums = sums(list(self._names))

    def families(self) -> Iterator[Metric]:
        labels = [*SET, "repository"] if self._by_repository else SET
        results = [*labels, "job_result"]
        started = CounterMetricFamily("gha_started_jobs", "Jobs that runners of the set have begun.", labels=labels)
        for key, some in self._of(Measured.Kind.STARTUP).items():
            started.add_metric(key, sum(one.count for one in some))
        yield started
        ended = CounterMetricFamily("gha_completed_jobs", "Jobs of runners of the set that have ended.", labels=results)
        for key, some in self._of(Measured.Kind.EXECUTION).items():
            ended.add_metric(key, sum(one.count for one in some))
        yield ended
        for kind, (name, what) in HISTOGRAMS.items():
            family = HistogramMetricFamily(name, what, labels=results if kind == Measured.Kind.EXECUTION else labels)
            for key, some in self._of(kind).items():
                family.add_metric(key, _buckets(some), sum(one.milliseconds for one in some) / 1000)
            yield family

    def _of(self, kind: str) -> dict[Key, list[Sum]]:
        """By the values of the labels; of each set also where there is nothing to count yet."""
        found: dict[Key, list[Sum]] = {}
        results = [[str(result)] for result in RESULTS] if kind == Measured.Kind.EXECUTION else [[]]
        if not self._by_repository:
            found = {(*names, *result): [] for names in self._names.values() for result in results}
        for one in self._sums:
            if one.kind == kind:
                repository = [one.repository] if self._by_repository else []
                result = [one.result] if kind == Measured.Kind.EXECUTION else []
                found.setdefault((*self._names[one.set_id], *repository, *result), []).append(one)
        return found


def _buckets(some: list[Sum]) -> list[tuple[str, float]]:
    """Each with all that took no longer. A sum kept under bounds of an earlier version counts from the next one on."""
    return [(floatToGoString(bound), sum(one.count for one in some if one.bound <= bound)) for bound in BOUNDS]

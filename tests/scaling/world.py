"""A runner set whose processes are a test's: what the scaler, the runners and the clock would do next, as methods."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.db.models import F

from ci.lifecycle import transitions
from ci.lifecycle.runner_sets import save_runner_set
from ci.lifecycle.tokens import runner_of
from ci.models import (
    TERMINAL_PHASES,
    Heartbeat,
    Job,
    LaunchAttempt,
    Run,
    Runner,
    RunnerPhase,
    RunnerSet,
    RunnerSetSample,
)
from ci.scaling.scaler import Scaler
from tests.playground import Assigned, Playground
from tests.scaling.fake_launcher import FakeLauncher

TIMES: dict[Any, tuple[str, ...]] = {
    RunnerSet: ("wake_at", "troubled_until", "parked_at", "deleting_at"),
    Runner: (
        *("created_at", "last_seen_at", "ended_at", "next_attempt_at", "launched_at", "registered_at", "idle_since"),
        *("deleting_at", "cleanup_at", "stopped_at"),
    ),
    LaunchAttempt: ("started_at", "ended_at"),
    RunnerSetSample: ("at",),
    Heartbeat: ("at",),
}


class AtOnce:
    """Makes each call when it is submitted; only what a test lets end the scaler ends it."""

    def submit(self, lane: Hashable, key: Hashable, call: Callable[[], None]) -> None:
        call()

    def is_busy(self, lane: Hashable, key: Hashable) -> bool:
        return False

    def close(self, seconds: float) -> None:
        pass


class World:
    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self.launcher = FakeLauncher()
        self.launchers = {"local": self.launcher}
        self.clock = 1000.0
        self.scaler = self.another_scaler()

    def another_scaler(self) -> Scaler:
        """As after the death of the first: nothing but the rows and the processes is left."""
        return Scaler(launcher_of=self.launchers.__getitem__, workers=AtOnce(), clock=lambda: self.clock)

    def make_set(self, **fields: Any) -> RunnerSet:
        given = {"name": "pool", "labels": ["linux"], "minimum": 0, "maximum": 10, **fields}
        self.set = save_runner_set(runner_set_id=None, fields=given, version=None, actor=self.playground.operator)
        return self.set

    def edit(self, **fields: Any) -> RunnerSet:
        return save_runner_set(runner_set_id=self.set.pk, fields=fields, version=None, actor=self.playground.operator)

    @cached_property
    def _commits(self) -> list[int]:
        return []

    def queue(self, count: int, *, runs_on: str = "linux", **options: Any) -> list[Job]:
        """So many queued jobs of one run, in the order of their ids."""
        self._commits.append(count)
        legs = ", ".join(str(number) for number in range(1, count + 1))
        workflow = f"""
            on: push
            jobs:
              build:
                runs-on: {runs_on}
                strategy:
                  fail-fast: false
                  matrix:
                    leg: [{legs}]
                steps:
                  - run: echo {len(self._commits)}
        """
        run: Run = self.playground.run(workflow, **options)
        return list(Job.objects.filter(run=run).order_by("pk"))

    def decide(self) -> transitions.Scaled:
        """Only the decision: nothing is started."""
        return transitions.scale_set(set_id=self.set.pk)

    def scale(self, times: int = 1) -> RunnerSet:
        """What a scaler does when everything is due."""
        for _ in range(times):
            self.look()
        return self.refreshed()

    def look(self, times: int = 1) -> None:
        """As scale, also where the set may be gone."""
        for _ in range(times):
            self.clock += 2
            self.scaler.wake_all()
            self.scaler.step()

    def refreshed(self) -> RunnerSet:
        self.set = RunnerSet.objects.get(pk=self.set.pk)
        return self.set

    @property
    def runners(self) -> list[Runner]:
        """Those that have not ended, the oldest first."""
        return list(Runner.objects.exclude(phase__in=TERMINAL_PHASES).order_by("created_at", "pk"))

    @property
    def ended(self) -> list[Runner]:
        return list(Runner.objects.filter(phase__in=TERMINAL_PHASES).order_by("pk"))

    @property
    def taking_room(self) -> int:
        return Runner.objects.filter(runner_set=self.set, stopped_at=None).count()

    def token(self, runner: Runner) -> str:
        """The credential of its newest process."""
        return [one.launch.token for one in self.launcher.started.values() if one.launch.runner_id == runner.pk][-1]

    def handle(self, runner: Runner) -> str:
        return Runner.objects.get(pk=runner.pk).handle

    def poll(self, runner: Runner) -> Assigned | None:
        """Its process asks for a job, by its own credential."""
        return self.playground.fetch(runner_of(self.token(runner)))

    def poll_all(self) -> list[Assigned]:
        """Each process that runs asks for a job."""
        running = [one for one in self.runners if one.handle in self.launcher.running]
        return [assigned for runner in running if (assigned := self.poll(runner)) is not None]

    def work_all(self) -> int:
        """Each process that runs takes a job, if there is one, does it, and ends."""
        done = self.poll_all()
        for assigned in done:
            assigned.begin().complete()
            self.launcher.end(self.handle(assigned.runner), 0)
        return len(done)

    def exit(self, runner: Runner, code: int | None, reason: str = "") -> None:
        self.launcher.end(self.handle(runner), code, reason)

    def busy(self) -> Runner:
        """A runner of the set in the middle of a job."""
        self.queue(1)
        self.scale()
        (assigned,) = self.poll_all()
        assigned.begin()
        self.assigned = assigned
        return Runner.objects.get(pk=assigned.runner.pk)

    def pass_time(self, seconds: float) -> None:
        """The clock goes on: everything that was written down is so much older."""
        self.clock += seconds
        for model, names in TIMES.items():
            model.objects.update(**{name: F(name) - timedelta(seconds=seconds) for name in names})

    def phases(self) -> list[str]:
        return list(Runner.objects.order_by("pk").values_list("phase", flat=True))

    def attempts(self, runner: Runner) -> list[LaunchAttempt]:
        return list(LaunchAttempt.objects.filter(runner=runner).order_by("number"))


def is_idle(runner: Runner) -> bool:
    return runner.phase == RunnerPhase.PENDING and runner.ready and runner.idle_since is not None

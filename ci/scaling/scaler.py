"""Who keeps the runner sets at their size? One leader: told of work, it decides in the database and acts outside it."""

from __future__ import annotations

import functools
import logging
import math
import queue
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime, timedelta
from typing import Protocol

import psycopg
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from ci.lifecycle import transitions, wanting
from ci.lifecycle.errors import LifecycleError, NotFound
from ci.lifecycle.events import JOB_QUEUED, SET_CHANGED
from ci.lifecycle.leading import SCALER_LOCK, Leading, Session, listen
from ci.models import LaunchAttempt, Runner, RunnerSet
from ci.scaling.installation import launcher_of
from ci.scaling.launchers.protocol import Launcher, LaunchError
from ci.scaling.looking import Orphans, look
from ci.scaling.starting import start
from ci.scaling.workers import Workers

logger = logging.getLogger(__name__)

LEADER_LOCK = SCALER_LOCK
ORPHANS_EVERY_SECONDS = 60.0
FORCE_AGAIN_SECONDS = 30.0
# Then it begins anew, and asks processes a second time to end.
MOST_REMEMBERED = 10_000
# Launcher calls that are going on when this process is asked to end.
LAST_CALLS_SECONDS = 5.0


class Work(Protocol):
    """Makes calls that may hang: ci.scaling.workers.Workers."""

    def submit(self, lane: Hashable, key: Hashable, call: Callable[[], None]) -> None: ...
    def is_busy(self, lane: Hashable, key: Hashable) -> bool: ...
    def close(self, seconds: float) -> None: ...


class Scaler:
    """`run` returns after `stop`. Nothing counts that it remembers: another one goes on where it ended."""

    def __init__(
        self,
        *,
        launcher_of: Callable[[str], Launcher] = launcher_of,
        workers: Work | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._leading = Leading(lock=LEADER_LOCK, name="forge scale")
        self._launcher_of = launcher_of
        self._workers: Work = workers or Workers()
        self._clock = clock
        self._orphans: defaultdict[str, Orphans] = defaultdict(lambda: Orphans(clock))
        self._woken: set[int] = set()
        self._asked: set[tuple[int, int]] = set()
        # Whose processes there may be, also of sets that are gone. Local ones cost nothing to look for.
        self._kinds: set[str] = {RunnerSet.Launcher.LOCAL}
        self._sweep_at = self._orphans_at = -math.inf
        self._look_at: dict[tuple[int, str], float] = {}
        # What the threads of calls say goes this way: all else here is the leading thread's.
        self._look_soon: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        self._losing_from: datetime | None = None

    def stop(self) -> None:
        self._leading.stop()

    def run(self) -> None:
        """Lead, or wait to lead, until stopped. Processes of runners live on."""
        try:
            self._leading.run(self._lead)
        finally:
            self._workers.close(LAST_CALLS_SECONDS)

    def _lead(self, session: Session) -> None:
        listen(session, [JOB_QUEUED, SET_CHANGED])
        # Until now perhaps nobody could reach the server or its database: whoever is alive gets the time to say so.
        self._losing_from = timezone.now() + timedelta(seconds=settings.SCALE_SILENT_SECONDS)
        self.wake_all()
        while not self._leading.stopped.is_set():
            close_old_connections()
            self.step()
            self._hear(self._leading.hear(session, self._sleep_seconds()))

    def wake_all(self) -> None:
        """Let everything be due at the next step."""
        self._sweep_at = self._orphans_at = -math.inf
        self._look_at.clear()

    def step(self) -> None:
        """Scale each set that is due, and look at processes where that is due. Raises OperationalError."""
        for set_id in self._due():
            self._scale(set_id)
        self._look_at_processes()

    def _due(self) -> list[int]:
        woken, self._woken = self._woken, set()
        sets = RunnerSet.objects.order_by("pk")
        if self._clock() >= self._sweep_at:
            self._sweep_at = self._clock() + settings.SCALE_SWEEP_SECONDS
            return list(sets.values_list("pk", flat=True))
        return sorted(woken | set(sets.filter(wake_at__lte=timezone.now()).values_list("pk", flat=True)))

    def _scale(self, set_id: int) -> None:
        """One set that cannot be scaled must not keep the others waiting."""
        try:
            scaled = transitions.scale_set(set_id=set_id, losing_from=self._losing_from)
        except NotFound:
            return
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("runner set %s could not be scaled", set_id)
            return
        for runner_id in scaled.launch:
            begin = functools.partial(start, runner_id, launcher_of=self._launcher_of)
            self._workers.submit(("start", set_id), runner_id, begin)
        for stop in scaled.stop:
            if stop.force or (stop.runner_id, stop.attempt) not in self._asked:
                call = functools.partial(self._stop, set_id, stop)
                self._workers.submit(("stop", set_id), (stop.runner_id, stop.force), call)

    def _stop(self, set_id: int, stop: transitions.Stop) -> None:
        """Once as a request, for a second one would break off what the first began; by force again and again."""
        if stop.force:
            given = {"runner_id": stop.runner_id, "attempt": stop.attempt}
            if not transitions.process_forced(**given, again_in=FORCE_AGAIN_SECONDS):
                return
        if len(self._asked) >= MOST_REMEMBERED:
            self._asked.clear()
        self._asked.add((stop.runner_id, stop.attempt))
        try:
            self._launcher_of(stop.launcher).stop(stop.handle, force=stop.force)
        except LaunchError as error:
            if not stop.force:
                self._asked.discard((stop.runner_id, stop.attempt))
            logger.warning("the process of runner %s could not be told to go: %s", stop.runner_id, error)
        self._look_soon.put((set_id, stop.launcher))

    def _look_at_processes(self) -> None:
        now = self._clock()
        open_ones = LaunchAttempt.objects.filter(ended_at=None, runner__runner_set__isnull=False)
        pairs = set(open_ones.order_by().values_list("runner__runner_set_id", "runner__launcher").distinct())
        while not self._look_soon.empty():
            self._look_at[self._look_soon.get()] = -math.inf
        self._look_at = {pair: self._look_at.get(pair, -math.inf) for pair in pairs}
        for set_id, kind in sorted(pairs):
            if now >= self._look_at[set_id, kind]:
                self._look_at[set_id, kind] = now + settings.SCALE_POLL_SECONDS
                self._submit_look(kind, set_id)
        if now >= self._orphans_at:
            self._orphans_at = now + ORPHANS_EVERY_SECONDS
            self._kinds |= _kinds()
            for kind in sorted(self._kinds):
                self._submit_look(kind, None)

    def _submit_look(self, kind: str, set_id: int | None) -> None:
        orphans = self._orphans[kind]

        def call() -> None:
            try:
                look(
                    self._launcher_of(kind),
                    kind=kind,
                    set_id=set_id,
                    orphans=orphans,
                    is_starting=lambda runner: self._workers.is_busy(("start", set_id), runner),
                )
            except (LaunchError, LifecycleError) as error:
                logger.warning("the processes of the %s launcher could not be looked at: %s", kind, error)

        self._workers.submit(("look", kind, set_id), "look", call)

    def _hear(self, words: Iterable[psycopg.Notify]) -> None:
        for word in words:
            if word.channel == SET_CHANGED and word.payload.isdecimal():
                self._woken.add(int(word.payload))
            elif word.channel == JOB_QUEUED:
                self._woken.update(wanting.sets_for(word.payload))

    def _sleep_seconds(self) -> float:
        if not self._look_soon.empty():
            return 0.0
        now = self._clock()
        times = [self._sweep_at - now, self._orphans_at - now, *(at - now for at in self._look_at.values())]
        wake = RunnerSet.objects.filter(wake_at__isnull=False).order_by("wake_at").values_list("wake_at", flat=True)
        times += [(at - timezone.now()).total_seconds() for at in wake[:1] if at is not None]
        return max(0.0, min(times))


def _kinds() -> set[str]:
    """The launchers that have been used, as far as the rows say."""
    used = Runner.objects.exclude(launcher="").order_by().values_list("launcher", flat=True).distinct()
    return {*used, *RunnerSet.objects.order_by().values_list("launcher", flat=True)}

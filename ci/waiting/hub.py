"""Whom of all the calls that wait in this process does a change in the database concern? One connection listens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError

from ci.lifecycle.events import JOB_CHANGED, JOB_QUEUED
from ci.waiting.turns import OUT_OF_TURN_SECONDS, Turns

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
# A job that nobody who was woken could take is left to the sweep after this many.
MOST_PASSES = 16
# Jobs of one label set that are queued at once make one notification: whoever got one has so many others look.
_AFTER_SUCCESS = 2
_MOST_LABEL_SETS = 10_000
_LISTEN = f"LISTEN {JOB_QUEUED}; LISTEN {JOB_CHANGED}"
# One look into the partial index for each label set, however long the queue is.
_QUEUED_SETS = """
    SELECT id, labels FROM ci_labelset WHERE EXISTS (
        SELECT 1 FROM ci_job WHERE ci_job.label_set_id = ci_labelset.id AND ci_job.state = 'queued'
    )
"""
_LABELS = "SELECT id, labels FROM ci_labelset WHERE id = %s"

Labels = frozenset[str]


@dataclass(frozen=True)
class Target:
    """A queued job: its label set and, where the notification says so, its repository and that one's owner."""

    label_set: int
    repository: int | None = None
    owner: int | None = None


@dataclass(eq=False)
class Waiter:
    """One runner's poll. `repository` and `owner`: the scope it serves, both None for the instance."""

    runner: int
    labels: Labels
    repository: int | None = None
    owner: int | None = None
    paused: bool = False
    event: asyncio.Event = field(default_factory=asyncio.Event)
    replaced: bool = False
    # What it was woken for and has not looked for yet, with the runners that were woken for the same before.
    pending: dict[Target, frozenset[int]] = field(default_factory=dict)

    def serves(self, target: Target) -> bool:
        if self.repository is not None:
            return target.repository in (None, self.repository)
        return self.owner is None or target.owner in (None, self.owner)


class Hub:
    """The waiting calls of one process, all on one event loop; no waiter takes a thread or a connection."""

    def __init__(
        self, parameters: Mapping[str, Any], still_queued: Callable[[int], Awaitable[bool]] | None = None
    ) -> None:
        self._parameters = parameters  # of psycopg.connect
        self._still_queued = still_queued
        self._turns = Turns()
        self._later: dict[Target, asyncio.Task[None]] = {}
        self._waiters: dict[int, Waiter] = {}
        # Those that look into the database at this moment are not idle: waking them again costs a second look.
        self._idle: dict[Labels, dict[int, Waiter]] = {}
        self._looking: dict[int, Waiter] = {}
        self._watched: dict[int, set[asyncio.Event]] = {}
        self._label_sets: dict[int, Labels] = {}
        self._listener: asyncio.Task[None] | None = None
        self.closing = False
        self.listening = asyncio.Event()

    def start(self) -> None:
        if self._listener is None and not self.closing:
            self._listener = asyncio.create_task(self._listen(), name="forge hub")

    def close(self) -> None:
        """Let every call that waits answer at once; calls that come later do not wait."""
        self.closing = True
        self._wake_everything()

    async def stop(self) -> None:
        self.close()
        if self._listener is not None:
            self._listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listener
            self._listener = None
        for task in [*self._later.values()]:
            task.cancel()

    @property
    def count(self) -> int:
        """How many polls wait or look."""
        return len(self._waiters)

    @contextlib.contextmanager
    def waiting(self, waiter: Waiter) -> Iterator[None]:
        """While open the waiter can be woken; a runner's new poll ends its older one."""
        older = self._waiters.get(waiter.runner)
        if older is not None:
            older.replaced = True
            older.event.set()
            self._forget(older)
        self._waiters[waiter.runner] = waiter
        self._looking[waiter.runner] = waiter
        try:
            yield
        finally:
            self._forget(waiter)
            for target, tried in waiter.pending.items():
                self.wake(target, tried | {waiter.runner})

    def look(self, waiter: Waiter) -> dict[Target, frozenset[int]]:
        """Before the waiter looks for a job: what it was woken for."""
        self._put(waiter, idle=False)
        waiter.event.clear()
        pending, waiter.pending = waiter.pending, {}
        return pending

    def rest(self, waiter: Waiter) -> None:
        """After it looked in vain."""
        self._put(waiter, idle=True)
        if waiter.pending:
            waiter.event.set()  # woken while it looked, perhaps too early to have seen what for

    def wake(self, target: Target, tried: frozenset[int] = frozenset()) -> None:
        """Wake one waiter that may take this job."""
        labels = self._label_sets.get(target.label_set)
        if labels is None or self.closing or len(tried) > MOST_PASSES:
            return
        chosen = self._choose(target, labels, tried)
        if chosen is None:
            return
        chosen.pending[target] = chosen.pending.get(target, frozenset()) | tried
        chosen.event.set()
        self._put(chosen, idle=False)

    def pass_on(self, target: Target, tried: frozenset[int], waiter: Waiter, *, took_one: bool) -> None:
        """A job is left of what the waiter was woken for. That it got one is no sign that others cannot."""
        for _ in range(_AFTER_SUCCESS if took_one else 1):
            self.wake(target, frozenset({waiter.runner}) if took_one else tried | {waiter.runner})

    @contextlib.contextmanager
    def watching(self, job_id: int) -> Iterator[asyncio.Event]:
        """The event that a change of this job sets."""
        event = asyncio.Event()
        self._watched.setdefault(job_id, set()).add(event)
        try:
            yield event
        finally:
            events = self._watched[job_id]
            events.discard(event)
            if not events:
                del self._watched[job_id]

    def _put(self, waiter: Waiter, *, idle: bool) -> None:
        if self._waiters.get(waiter.runner) is not waiter:
            return
        self._forget(waiter)
        self._waiters[waiter.runner] = waiter
        if idle:
            self._idle.setdefault(waiter.labels, {})[waiter.runner] = waiter
        else:
            self._looking[waiter.runner] = waiter

    def _forget(self, waiter: Waiter) -> None:
        if self._waiters.get(waiter.runner) is not waiter:
            return
        del self._waiters[waiter.runner]
        self._looking.pop(waiter.runner, None)
        group = self._idle.get(waiter.labels)
        if group is not None:
            group.pop(waiter.runner, None)
            if not group:
                del self._idle[waiter.labels]

    def _choose(self, target: Target, labels: Labels, tried: frozenset[int]) -> Waiter | None:
        fitting = [group for has, group in self._idle.items() if labels <= has]
        random.shuffle(fitting)  # so that no group of runners gets all the work
        groups = [*fitting, {runner: one for runner, one in self._looking.items() if labels <= one.labels}]
        for group in groups:
            for waiter in group.values():
                if waiter.runner not in tried and not waiter.paused and waiter.serves(target):
                    return waiter
        return None

    def _wake_everything(self) -> None:
        for waiter in self._waiters.values():
            waiter.event.set()
        self._wake_watched()

    def _wake_watched(self) -> None:
        for events in self._watched.values():
            for event in events:
                event.set()

    async def _listen(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                connection = await psycopg.AsyncConnection.connect(**self._parameters, autocommit=True)
                async with connection:
                    await connection.execute(_LISTEN)
                    self._wake_watched()  # cancels may have been missed
                    pause = _FIRST_PAUSE
                    self.listening.set()
                    await self._serve(connection)
            except (psycopg.Error, OSError) as error:
                logger.warning("the hub lost the database (%s) and tries again", type(error).__name__)
            except Exception:
                logger.exception("the hub stumbled and starts anew")
            self.listening.clear()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(_LONGEST_PAUSE, pause * 2)

    async def _serve(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Sweep, and between sweeps hear notifications; those that come meanwhile are kept by the connection."""
        next_sweep = time.monotonic()
        while True:
            left = next_sweep - time.monotonic()
            if left <= 0:
                await self._sweep(connection)
                next_sweep = time.monotonic() + settings.SWEEP_SECONDS * random.uniform(0.5, 1.5)
                continue
            # To the end of each batch: a generator left early drops what came in the same packet, and keeps its lock.
            batch = [notify async for notify in connection.notifies(timeout=left, stop_after=1)]
            for notify in batch:
                await self._hear(connection, notify)

    async def _hear(self, connection: psycopg.AsyncConnection[Any], notify: psycopg.Notify) -> None:
        if notify.channel == JOB_CHANGED:
            self._changed(notify.payload)
            return
        target = _target(notify.payload)
        if target is None:  # a runner was resumed: whatever is queued may be for it
            self._wake_paused()
            return
        if target.label_set not in self._label_sets:
            cursor = await connection.execute(_LABELS, [target.label_set])
            self._know(await cursor.fetchall())
        if self._still_queued is None or self._turns.is_mine(notify):
            self.wake(target)
        elif target not in self._later:
            self._later[target] = asyncio.create_task(self._wake_later(target))

    async def _wake_later(self, target: Target) -> None:
        try:
            await asyncio.sleep(OUT_OF_TURN_SECONDS)
        finally:
            del self._later[target]  # one that is queued from now on is looked for anew
        assert self._still_queued is not None
        try:
            left = await self._still_queued(target.label_set)
        except DatabaseError:
            left = True
        if left:
            self.wake(target)

    async def _sweep(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """The backstop: whatever notification was missed, each label set with queued jobs has somebody look."""
        await self._turns.count(connection)
        if not self._idle:
            return
        cursor = await connection.execute(_QUEUED_SETS)
        rows = await cursor.fetchall()
        self._know(rows)
        for label_set, _ in rows:
            self.wake(Target(label_set))

    def _know(self, rows: Sequence[tuple[int, list[str]]]) -> None:
        if len(self._label_sets) > _MOST_LABEL_SETS:
            self._label_sets.clear()
        self._label_sets.update((label_set, frozenset(labels)) for label_set, labels in rows)

    def _changed(self, payload: str) -> None:
        if payload.isascii() and payload.isdigit():
            for event in self._watched.get(int(payload), ()):
                event.set()

    def _wake_paused(self) -> None:
        for waiter in self._waiters.values():
            if waiter.paused:
                waiter.paused = False
                waiter.event.set()


def _target(payload: str) -> Target | None:
    """`label set`, or `label set:repository:owner`; None for anything else."""
    parts = payload.split(":")
    if not all(part.isascii() and part.isdigit() for part in parts) or len(parts) not in (1, 3):
        return None
    return Target(*map(int, parts))

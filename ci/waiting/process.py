"""What do the waiting calls of one process share? One hub, and few threads for their work in the database."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections, connections

from ci.lifecycle import polls
from ci.waiting.gathering import Gathering
from ci.waiting.hub import Hub
from ci.waiting.turns import NAME

P = ParamSpec("P")
R = TypeVar("R")

# Each holds a database connection while it works, and work is short: more threads would only wait for each other.
# Heartbeats have their own: they wait for the lock of their run, which polls, that wait for nobody, must not do.
_POLL_THREADS = 6
_HEARTBEAT_THREADS = 8
# What a poll's first look may wait for others that ask the same, in seconds for each call that waits here.
_GATHER_A_WAITER, _LONGEST_GATHER = 100e-6, 0.2
_MOST_KNOWN = 50_000
# Each of thousands of waiting calls is some objects that stay: looking through all of them for circles, as often as
# Python does by itself, halts everybody for tens of milliseconds.
_GC_THRESHOLDS = (50_000, 50, 100)
# Psycopg's own; what Django adds for itself is left out.
_NOT_FOR_PSYCOPG = ("context", "cursor_factory", "prepare_threshold", "pool", "assume_role", "isolation_level")


class Process:
    """What the waiting calls of one event loop share."""

    def __init__(self) -> None:
        given = connections["default"].get_connection_params()
        parameters = {name: value for name, value in given.items() if name not in _NOT_FOR_PSYCOPG}
        self.loop = asyncio.get_running_loop()
        self.pollers: Gathering[polls.Poller, polls.Word] = Gathering(self._look_for, self._gather_seconds)
        self.identities: Gathering[str, polls.Poller | None] = Gathering(self._identify, self._gather_seconds)
        self.queued: Gathering[int, bool] = Gathering(self._still_queued, float)
        self.hub = Hub({**parameters, "application_name": NAME, "connect_timeout": 10}, self.queued.ask)
        self.polls = ThreadPoolExecutor(_POLL_THREADS, thread_name_prefix="polls")
        self.heartbeats = ThreadPoolExecutor(_HEARTBEAT_THREADS, thread_name_prefix="heartbeats")
        self.known = Known()
        self._beside: set[asyncio.Task[None]] = set()  # the loop itself keeps none alive
        self.hub.start()

    async def poll(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Database work that takes no lock of a run, in one of few threads."""
        call = functools.partial(_with_fresh_connection, work, args, kwargs)
        return await self.loop.run_in_executor(self.polls, call)

    async def beat(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Database work that may wait for the lock of a run, in one of few other threads."""
        call = functools.partial(_with_fresh_connection, work, args, kwargs)
        return await self.loop.run_in_executor(self.heartbeats, call)

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that nobody waits for."""
        task = self.loop.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _identify(self, asked: Sequence[str]) -> Sequence[polls.Poller | None]:
        return await self.poll(polls.identify, asked)

    async def _look_for(self, asked: Sequence[polls.Poller]) -> Sequence[polls.Word]:
        return await self.poll(polls.look_for, asked)

    async def _still_queued(self, asked: Sequence[int]) -> Sequence[bool]:
        queued = await self.poll(polls.still_queued, set(asked))
        return [label_set in queued for label_set in asked]

    def _gather_seconds(self) -> float:
        """The more wait, the more polls an instant, and the fewer questions for all of them."""
        return min(_LONGEST_GATHER, self.hub.count * _GATHER_A_WAITER)

    async def stop(self) -> None:
        await self.hub.stop()
        for task in [*self._beside]:
            task.cancel()
        for threads in (self.polls, self.heartbeats):
            await self.loop.run_in_executor(None, threads.shutdown)


class Known:
    """Runners that have looked into the database before, by the hash of their token."""

    def __init__(self) -> None:
        self._pollers: dict[str, polls.Poller] = {}
        self._at_work: set[str] = set()

    def is_at_work(self, token_hash: str) -> bool:
        """Whether its last poll got a job: the next, which may well get another, shall not wait for others. Asked once
        a poll."""
        if token_hash not in self._at_work:
            return False
        self._at_work.discard(token_hash)
        return True

    def get(self, token_hash: str) -> polls.Poller | None:
        return self._pollers.get(token_hash)

    def learn(self, poller: polls.Poller, *, got_a_job: bool) -> None:
        if len(self._pollers) >= _MOST_KNOWN:
            self._pollers.clear()
            self._at_work.clear()
        self._pollers[poller.token_hash] = poller
        if got_a_job:
            self._at_work.add(poller.token_hash)

    def forget(self, poller: polls.Poller) -> None:
        self._pollers.pop(poller.token_hash, None)


_process: Process | None = None


def _with_fresh_connection(work: Callable[..., R], args: Any, kwargs: Any) -> R:
    close_old_connections()
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()


def current() -> Process:
    """Servers that send no lifespan events start it with their first call."""
    global _process
    if _process is None or _process.loop is not asyncio.get_running_loop():
        _process = Process()
    return _process


async def startup() -> None:
    """For the ASGI lifespan."""
    _answer_when_told_to_end(current())
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


async def shutdown() -> None:
    """For the ASGI lifespan."""
    global _process
    if _process is not None:
        process, _process = _process, None
        await process.stop()


def _answer_when_told_to_end(process: Process) -> None:
    """At SIGTERM the server first waits for its calls, and only then says `shutdown`: they must hear of it before."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        previous = signal.getsignal(number)
        if callable(previous):
            signal.signal(number, functools.partial(_end, process, previous))


def _end(
    process: Process, previous: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        process.loop.call_soon_threadsafe(process.hub.close)
    previous(number, frame)

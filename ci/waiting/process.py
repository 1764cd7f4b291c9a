"""What do the waiting calls of one process share? One hub, and few threads for their work in the database."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections, connections

from ci.waiting.hub import Hub

P = ParamSpec("P")
R = TypeVar("R")

# Each holds a database connection while it works, and work is short: more threads would only wait for each other.
# Heartbeats have their own: they wait for the lock of their run, which polls, that wait for nobody, must not do.
_POLL_THREADS = 6
_HEARTBEAT_THREADS = 12
# Psycopg's own; what Django adds for itself is left out.
_NOT_FOR_PSYCOPG = ("context", "cursor_factory", "prepare_threshold", "pool", "assume_role", "isolation_level")


class Process:
    """What the waiting calls of one event loop share."""

    def __init__(self) -> None:
        given = connections["default"].get_connection_params()
        parameters = {name: value for name, value in given.items() if name not in _NOT_FOR_PSYCOPG}
        self.loop = asyncio.get_running_loop()
        self.hub = Hub({**parameters, "application_name": "forge hub", "connect_timeout": 10})
        self.polls = ThreadPoolExecutor(_POLL_THREADS, thread_name_prefix="polls")
        self.heartbeats = ThreadPoolExecutor(_HEARTBEAT_THREADS, thread_name_prefix="heartbeats")
        self.hub.start()

    async def poll(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Database work that takes no lock of a run, in one of few threads."""
        call = functools.partial(_with_fresh_connection, work, args, kwargs)
        return await self.loop.run_in_executor(self.polls, call)

    async def beat(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Database work that may wait for the lock of a run, in one of few other threads."""
        call = functools.partial(_with_fresh_connection, work, args, kwargs)
        return await self.loop.run_in_executor(self.heartbeats, call)

    async def stop(self) -> None:
        await self.hub.stop()
        for threads in (self.polls, self.heartbeats):
            await self.loop.run_in_executor(None, threads.shutdown)


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

"""How do jobs/fetch and heartbeat wait without cost? As a raw ASGI application that holds only their sockets."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
import re
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import close_old_connections, connections
from rest_framework.serializers import Serializer

from ci.api import authentication
from ci.api.asgi_call import Call, ClientGone, Receive, Send
from ci.api.hub import Hub, Target, Waiter
from ci.api.runner import calls
from ci.api.runner.serializers import FetchRequest, HeartbeatRequest
from ci.lifecycle.matching import normalised
from ci.models import Runner

logger = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

# Each holds a database connection while it works, and work is short: more threads would only wait for each other.
# Heartbeats have their own: they wait for the lock of their run, which polls, that wait for nobody, must not do.
_POLL_THREADS = 6
_HEARTBEAT_THREADS = 12
_PATH = re.compile(r"/api/runner/v1/jobs/(?:fetch|([1-9][0-9]{0,18})/heartbeat)")
_LARGEST_ID = 2**63 - 1
# Psycopg's own; what Django adds for itself is left out.
_NOT_FOR_PSYCOPG = ("context", "cursor_factory", "prepare_threshold", "pool", "assume_role", "isolation_level")


class _Process:
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


_process: _Process | None = None


def _with_fresh_connection(work: Callable[..., R], args: Any, kwargs: Any) -> R:
    close_old_connections()
    try:
        return work(*args, **kwargs)
    finally:
        close_old_connections()


def _current() -> _Process:
    """Servers that send no lifespan events start it with their first call."""
    global _process
    if _process is None or _process.loop is not asyncio.get_running_loop():
        _process = _Process()
    return _process


async def startup() -> None:
    """For the ASGI lifespan."""
    _answer_when_told_to_end(_current())


async def shutdown() -> None:
    """For the ASGI lifespan."""
    global _process
    if _process is not None:
        process, _process = _process, None
        await process.stop()


def _answer_when_told_to_end(process: _Process) -> None:
    """At SIGTERM the server first waits for its calls, and only then says `shutdown`: they must hear of it before."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        previous = signal.getsignal(number)
        if callable(previous):
            signal.signal(number, functools.partial(_end, process, previous))


def _end(
    process: _Process, previous: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        process.loop.call_soon_threadsafe(process.hub.close)
    previous(number, frame)


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application for POST /api/runner/v1/jobs/fetch and …/jobs/{id}/heartbeat."""
    call = Call(scope, receive, send)
    found = _PATH.fullmatch(scope["path"])
    job_id = int(found[1]) if found and found[1] else None
    try:
        if found is None or (job_id or 0) > _LARGEST_ID:
            await call.refuse(404, "not_found", "There is nothing at this address.")
        elif scope["method"] != "POST":
            await call.refuse(405, "method_not_allowed", "Use POST.", allow="POST")
        elif job_id is None:
            await _fetch(call, _current())
        else:
            await _heartbeat(call, _current(), job_id)
    except ClientGone:
        pass
    except Exception as error:
        await call.fail(error)
    finally:
        call.close()


def _checked(shape: type[Serializer[Any]], body: dict[str, Any]) -> dict[str, Any]:
    serializer = shape(data=body)
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


async def _fetch(call: Call, process: _Process) -> None:
    runner = await process.poll(authentication.runner, call.authorization)
    given = _checked(FetchRequest, await call.body())
    hub = process.hub
    waiter = Waiter(
        runner=runner.pk,
        labels=frozenset(normalised(runner.labels)),
        repository=runner.repository_id,
        owner=runner.owner_id,
        paused=runner.paused,
    )
    # Spread, or all runners that a restart made poll together would do so for ever.
    until = process.loop.time() + given["wait"] * random.uniform(0.5, 1.0)
    # Waiting is registered before the first look: a job that is queued in between wakes it.
    with hub.waiting(waiter):
        while True:
            if call.is_gone or waiter.replaced:
                break
            woken_for = hub.look(waiter)
            payload = await _look(process, runner, waiter, given["poll_id"], woken_for)
            if payload is not None:
                await call.answer(200, payload)
                return
            hub.rest(waiter)
            if hub.closing or not await call.wait(waiter.event, until - process.loop.time()):
                break
    await call.answer(204)


async def _look(
    process: _Process, runner: Runner, waiter: Waiter, poll_id: str, woken_for: dict[Target, frozenset[int]]
) -> dict[str, Any] | None:
    """One look for a job. What it was woken for and did not take, it passes on."""
    passed, payload = woken_for, None
    try:
        payload, left = await process.poll(_take, runner, poll_id, {target.label_set for target in woken_for})
        passed = {target: tried for target, tried in woken_for.items() if target.label_set in left}
        return payload
    finally:
        for target, tried in passed.items():
            process.hub.pass_on(target, tried, waiter, took_one=payload is not None)


def _take(runner: Runner, poll_id: str, label_sets: set[int]) -> tuple[dict[str, Any] | None, set[int]]:
    payload = calls.fetch(runner=runner, poll_id=poll_id)
    return payload, calls.still_queued(label_sets)


async def _heartbeat(call: Call, process: _Process, job_id: int) -> None:
    _, token = await process.beat(authentication.job, call.authorization, job_id=job_id)
    wait = _checked(HeartbeatRequest, await call.body())["wait"]
    # A call that waits is heard of at both ends, so it must be well shorter than the silence that loses a job.
    wait = min(wait, settings.HEARTBEAT_SECONDS / 2)
    with process.hub.watching(job_id) as changed:
        answer = await process.beat(calls.heartbeat, job_id=job_id, token=token)
        if answer["cancel"] is None and wait > 0 and not process.hub.closing:
            await call.wait(changed, wait)
            if call.is_gone:
                return
            answer = await process.beat(calls.heartbeat, job_id=job_id, token=token)
    await call.answer(200, answer)

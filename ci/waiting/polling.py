"""How does a poll wait for a job? It looks, rests on the hub until there may be one for its runner, and looks again."""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeVar

from django.db import DatabaseError

from ci.lifecycle.fetch import Build, fetch_as
from ci.lifecycle.polls import Poller, Word
from ci.models import Runner
from ci.waiting.hub import Target, Waiter
from ci.waiting.process import Process

T = TypeVar("T")


class Client(Protocol):
    """Who asked, and whether they are still there."""

    @property
    def is_gone(self) -> bool: ...

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """True when the event came; False after `seconds`, or when the client hung up."""
        ...


class Changed(Exception):
    """What is known of the runner is no longer true."""


async def next_job(
    process: Process,
    client: Client,
    *,
    runner: Runner | Poller,
    poll_id: str,
    seconds: float,
    build: Build[T],
    known: bool = False,
) -> T | None:
    """The payload of a job for this runner, as `build` makes it; None after `seconds`, or when nobody waits any more.

    `known`: it has looked before, and its row may have changed since. Then its first look is one with many others.
    Raises Unauthenticated when the runner is gone; Changed only where it is `known`.
    """
    poller = runner if isinstance(runner, Poller) else Poller.of(runner)
    hub = process.hub
    waiter = Waiter(
        runner=poller.pk,
        labels=poller.labels,
        repository=poller.repository,
        owner=poller.owner,
        paused=poller.paused,
    )
    until = process.loop.time() + seconds
    again = False
    # Waiting is registered before the first look: a job that is queued in between wakes it.
    with hub.waiting(waiter):
        if known and await _is_vain(process, poller):
            again = True  # nothing was assigned to it
            hub.rest(waiter)
            if hub.closing or not await client.wait(waiter.event, until - process.loop.time()):
                return None
        while not (client.is_gone or waiter.replaced):
            payload = await _look(process, poller, waiter, poll_id, hub.look(waiter), build, again)
            if payload is not None:
                return payload
            again = True
            hub.rest(waiter)
            if hub.closing or not await client.wait(waiter.event, until - process.loop.time()):
                break
    return None


async def _is_vain(process: Process, poller: Poller) -> bool:
    """Raises Changed."""
    word = await process.pollers.ask(poller)
    if word == Word.CHANGED:
        raise Changed
    return word == Word.NOTHING


async def _look(
    process: Process,
    poller: Poller,
    waiter: Waiter,
    poll_id: str,
    woken_for: dict[Target, frozenset[int]],
    build: Build[T],
    again: bool,
) -> T | None:
    """One look for a job. What it was woken for and did not take, it passes on."""
    payload = None
    try:
        payload = await process.poll(_take, poller, poll_id, build, again)
    except BaseException:
        for target, tried in woken_for.items():
            process.hub.pass_on(target, tried, waiter, took_one=False)
        raise
    if woken_for:
        # Beside the answer: who has its job need not wait until it is known whether others are left.
        process.beside(_pass_on(process, waiter, woken_for, took_one=payload is not None))
    return payload


def _take(poller: Poller, poll_id: str, build: Build[T], again: bool) -> T | None:
    return fetch_as(build, runner_id=poller.pk, token_hash=poller.token_hash or None, poll_id=poll_id, again=again)


async def _pass_on(
    process: Process, waiter: Waiter, woken_for: dict[Target, frozenset[int]], *, took_one: bool
) -> None:
    """Of what it was woken for, what is still queued."""
    for target, tried in woken_for.items():
        try:
            left = await process.queued.ask(target.label_set)
        except DatabaseError:
            left = True  # nobody can tell: somebody shall look
        if left:
            process.hub.pass_on(target, tried, waiter, took_one=took_one)

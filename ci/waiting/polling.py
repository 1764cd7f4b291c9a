"""How does a poll wait for a job? It looks, rests on the hub until there may be one for its runner, and looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Protocol, TypeVar

from django.db.models import Exists, OuterRef

from ci.lifecycle.fetch import Build, fetch_as
from ci.lifecycle.matching import normalised
from ci.models import Job, JobState, LabelSet, Runner
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


async def next_job(
    process: Process, client: Client, *, runner: Runner, poll_id: str, seconds: float, build: Build[T]
) -> T | None:
    """The payload of a job for this runner, as `build` makes it; None after `seconds`, or when nobody waits any more.

    Raises Unauthenticated when the runner is gone.
    """
    hub = process.hub
    waiter = Waiter(
        runner=runner.pk,
        labels=frozenset(normalised(runner.labels)),
        repository=runner.repository_id,
        owner=runner.owner_id,
        paused=runner.paused,
    )
    until = process.loop.time() + seconds
    # Waiting is registered before the first look: a job that is queued in between wakes it.
    with hub.waiting(waiter):
        while not (client.is_gone or waiter.replaced):
            payload = await _look(process, runner, waiter, poll_id, hub.look(waiter), build)
            if payload is not None:
                return payload
            hub.rest(waiter)
            if hub.closing or not await client.wait(waiter.event, until - process.loop.time()):
                break
    return None


async def _look(
    process: Process,
    runner: Runner,
    waiter: Waiter,
    poll_id: str,
    woken_for: dict[Target, frozenset[int]],
    build: Build[T],
) -> T | None:
    """One look for a job. What it was woken for and did not take, it passes on."""
    passed, payload = woken_for, None
    try:
        label_sets = {target.label_set for target in woken_for}
        payload, left = await process.poll(_take, runner, poll_id, label_sets, build)
        passed = {target: tried for target, tried in woken_for.items() if target.label_set in left}
        return payload
    finally:
        for target, tried in passed.items():
            process.hub.pass_on(target, tried, waiter, took_one=payload is not None)


def _take(runner: Runner, poll_id: str, label_sets: set[int], build: Build[T]) -> tuple[T | None, set[int]]:
    payload = fetch_as(build, runner_id=runner.pk, token_hash=runner.token_hash, poll_id=poll_id)
    return payload, _still_queued(label_sets)


def _still_queued(label_sets: Collection[int]) -> set[int]:
    """Of these label sets, the ones that a queued job names."""
    if not label_sets:
        return set()
    queued = Job.objects.filter(label_set=OuterRef("pk"), state=JobState.QUEUED)
    return set(LabelSet.objects.filter(Exists(queued), pk__in=label_sets).values_list("pk", flat=True))

"""Which small worlds are explored, and what makes two of their states the same?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.test import override_settings

from ci.models import ACTIVE_STATES, TERMINAL_PHASES
from tests.races.explored_others import job_moves, newest, owner_moves, removal_moves, set_moves, watch_moves
from tests.races.explored_runner import RunnerMoves
from tests.races.exploring import Belief, Digest, Explorer, Found, Move, Seen
from tests.races.model import World
from tests.races.rows import Row

Moves = Callable[[Seen], Iterator[Move]]


@dataclass(frozen=True)
class Small:
    """A run of two jobs, two runners (single-use or not), an owner, the watch and the set of the single-use ones.

    `single_jobs`: whether the owner cancels jobs one by one too; `removal`: whether runners are removed.
    """

    workflow: str
    single_use: tuple[bool, bool] = (False, True)
    single_jobs: bool = False
    removal: bool = False
    most_states: int = 100_000


# The search must not be overtaken by the clock: nothing is due but what a move lets pass.
LONG_SECONDS = 10**6
TIMELESS = dict.fromkeys(
    ("ACKNOWLEDGE_SECONDS", "HEARTBEAT_SECONDS", "CANCEL_GRACE_SECONDS", "QUEUE_SECONDS"), LONG_SECONDS
)


@override_settings(**TIMELESS)
def explore(small: Small, *, say: Callable[[Found], None] = lambda found: None) -> Found:
    world = World()
    runners = [world.register(ephemeral=ephemeral) for ephemeral in small.single_use]
    world.push(small.workflow)
    acting = [
        RunnerMoves(index, runner.pk, ephemeral=runner.ephemeral, owner=world.owner)
        for index, runner in enumerate(runners)
    ]
    moves = _all_moves(small, acting, world.owner)
    explorer = Explorer(moves, digest([runner.pk for runner in runners]), most_states=small.most_states, say=say)
    return explorer.explore((None, None))


def _all_moves(small: Small, acting: Sequence[RunnerMoves], owner: Any) -> Callable[[Seen], list[Move]]:
    def moves(seen: Seen) -> list[Move]:
        found = [move for runner in acting for move in runner.moves(seen)]
        found += [*owner_moves(seen, owner), *watch_moves(seen)]
        if small.single_jobs:
            found += job_moves(seen, owner)
        with_a_job = {job["runner_id"] for job in seen.rows["jobs"] if job["state"] in ACTIVE_STATES}
        for runner in seen.rows["runners"]:
            busy = runner["id"] in with_a_job
            if runner["ephemeral"]:
                found += set_moves(runner, busy, owner)
            if small.removal:
                found += removal_moves(runner, busy, owner)
        return found

    return moves


def digest(runner_ids: Sequence[int]) -> Callable[[Seen], Digest]:
    """What counts of a state: all that some call asks for. Ids, times, versions, notes and what is over do not."""

    def digested(seen: Seen) -> Digest:
        (run,) = seen.rows["runs"]
        jobs = newest(seen)
        names = {job["id"]: (job["key"], job["matrix_index"]) for job in jobs}
        begun = {step["job_id"] for step in seen.rows["steps"] if step["number"] > 1}
        queue = sorted((job["queued_at"], job["id"]) for job in jobs if job["state"] == "queued")
        runners = {runner["id"]: runner for runner in seen.rows["runners"]}
        return (
            (run["state"], run["conclusion"], bool(run["cancel_reason"])),
            tuple(_job(job, names[job["id"]], runner_ids, job["id"] in begun) for job in jobs),
            tuple(names[job_id] for _, job_id in queue),
            tuple(_runner(runners.get(runner_id)) for runner_id in runner_ids),
            tuple(belief and _belief(seen, belief) for belief in seen.beliefs),
        )

    return digested


def _belief(seen: Seen, belief: Belief) -> str:
    """Whether its token is of a job that it has. Another one's calls are refused, or told of an end, whatever else is:
    a replaced token stays replaced, and an ended job ended.
    """
    job = seen.job(belief.job_id)
    return "current" if job is not None and job["state"] in ACTIVE_STATES and seen.is_current(belief) else "over"


def _job(job: Row, name: tuple[str, int], runner_ids: Sequence[int], begun: bool) -> Digest:
    if job["state"] == "ended":
        return (name, job["conclusion"], bool(job["started_at"]))
    runner = runner_ids.index(job["runner_id"]) if job["runner_id"] else None
    return (name, job["state"], job["hold"], job["expanded"], bool(job["cancel_reason"]), runner, begun)


def _runner(runner: Row | None) -> Digest | None:
    """How it ended makes no difference to any call."""
    if runner is None or runner["phase"] in TERMINAL_PHASES:
        return runner and ("over",)
    return (runner["phase"], runner["used_job_id"] is not None)

"""Does a long queue make a claim or a poll in vain slower? Each beside the same with 1,000 queued jobs.

It is the statement of the claim that is measured, through psycopg, with its commit and nothing of Python around it:
what else a poll does reads rows by their keys, and would only hide how the statement grows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from ci.lifecycle.queue_query import CLAIM, CLAIM_BY_REPOSITORY
from tests.bench.figures import Figure, median
from tests.bench.ground import running
from tests.bench.queued import Queue

AIM = 1.5
SIZES = (1_000, 100_000, 1_000_000)
_LABEL_SETS, _FITTING, _REPOSITORIES, _TIMES = 50, 7, 100, 120
LABELS = ["linux", *(f"label-{number}" for number in range(1, _FITTING + 1))]
_EVERYWHERE = {"repository": None, "owner": None, "repositories": None, "full": []}
# One that no repository and no person has.
_NONE = 2**40
CLAIMED = "a claim"
# Polls in vain: what is in the way of every queued job.
VAIN: Mapping[str, tuple[str, dict[str, Any]]] = {
    "no label fits": (CLAIM, {"labels": ["windows"]}),
    "all are of other repositories": (CLAIM, {"repository": _NONE}),
    "all are of other owners": (CLAIM, {"owner": _NONE}),
    "its set is for other repositories": (CLAIM_BY_REPOSITORY, {"repositories": [_NONE]}),
    "all repositories have what its set may run of each": (CLAIM_BY_REPOSITORY, {"full": ...}),
}


def measure(*, sizes: Sequence[int] = SIZES, times: int = _TIMES) -> list[Figure]:
    found: dict[int, dict[str, float]] = {}
    with running() as ground:
        queue = Queue(ground)
        label_sets, repositories = queue.label_sets(_LABEL_SETS), queue.repositories(_REPOSITORIES)
        runners, _ = queue.runners(times * len(sizes), LABELS, name="bench")
        there = 0
        with ground.connect() as session:
            session.cursor_factory = psycopg.ClientCursor  # as Django does
            for size in sizes:
                queue.fill(size - there, label_sets, repositories=repositories, jobs_a_run=20)
                there = size
                taking, runners = runners[:times], runners[times:]
                found[size] = _look(session, taking, repositories)
    return [
        Figure(
            f"{what}, {size:,} queued" if what == CLAIMED else f"a poll in vain, {size:,} queued: {what}",
            found[size][what] * 1000,
            "ms",
            AIM,
            beside=found[sizes[0]][what] * 1000,
            beside_what=f"with {sizes[0]:,}",
        )
        for what in found[sizes[0]]
        for size in sizes[1:]
    ]


def _look(
    session: psycopg.Connection[tuple[Any, ...]], runners: Sequence[int], repositories: Sequence[int]
) -> dict[str, float]:
    """Median seconds of a claim, for one runner after the other, and of each poll in vain."""
    took: dict[str, list[float]] = {name: [] for name in (CLAIMED, *VAIN)}
    for runner in runners:
        for name, (statement, given) in {CLAIMED: (CLAIM, {}), **VAIN}.items():
            values = {**_values(runner), **given}
            if values["full"] is ...:
                values["full"] = list(repositories)
            began = time.perf_counter()
            row = session.execute(statement, values).fetchone()
            took[name].append(time.perf_counter() - began)
            assert row is not None and (row[0] is not None) == (name == CLAIMED), f"{name}: {row}"
    return {name: median(seconds) for name, seconds in took.items()}


def _values(runner: int) -> dict[str, Any]:
    given = {"runner": runner, "name": "bench", "single_use": False, "token_hash": "0" * 64, "poll_id": "poll"}
    return {**given, **_EVERYWHERE, "now": "now", "deadline": "tomorrow", "labels": sorted(LABELS)}

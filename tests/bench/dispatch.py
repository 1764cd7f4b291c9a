"""How long is it from the commit of a queued job until a waiting runner has it?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.bench.crowd import SETTINGS, Crowd
from tests.bench.figures import Figure, median, share
from tests.bench.ground import running

CROWDS = (1_000, 5_000)
JOBS, RATE = 500, 50.0
_SETTLE_SECONDS = 5.0
_LATE_SECONDS = 5.0
_REASON = (
    "a claim and its payload take the web processes about 9 ms, mostly for statements and rows that the ORM builds, "
    "and who queues the jobs works on the same cores; next: runner and job by SQL of their own"
)


def measure(crowds: Sequence[int] = CROWDS, jobs: int = JOBS, rate: float = RATE) -> list[Figure]:
    return [figure for waiting in crowds for figure in _with(waiting, jobs, rate)]


def _with(waiting: int, jobs: int, rate: float) -> Iterator[Figure]:
    """Never fewer idle runners than `waiting`: who got a job takes no other, and for each there is one more."""
    with running(**SETTINGS) as ground:
        crowd = Crowd(ground, jobs=jobs)
        with crowd.waiting(waiting + jobs) as runners, crowd.queuer(crowd.jobs, rate=rate, bare=jobs) as queuer:
            time.sleep(_SETTLE_SECONDS)
            story = queuer.end(patience=60 + 3 * jobs / rate)
            time.sleep(_LATE_SECONDS)
            told = runners.end()
    queued = {int(job): at for job, at in story["queued"].items()}
    got = Counter(job for job, _ in told["got"])
    waits = [at - queued[job] for job, at in told["got"]]
    left = sum(1 for job in queued if got[job] != 1) + len(told["problems"])
    what = f"dispatch, {waiting:,} idle runners, {rate:.0f} jobs/s"
    bare = median(story["bare"]) * 1000
    yield Figure(f"{what}: p50", median(waits) * 1000, "ms", 5, bare, "a bare LISTEN/NOTIFY round trip", note=_REASON)
    yield Figure(f"{what}: p99", share(waits, 0.99) * 1000, "ms", 50, note=_bare_note(story["bare"]))
    yield Figure(f"{what}: left over, doubled or failed", left, "jobs", 0, note="; ".join(told["problems"][:3]))


def _bare_note(trips: Sequence[float]) -> str:
    return f"the bare round trip's p99 in the same run is {share(trips, 0.99) * 1000:.2g} ms; the rest as for p50"

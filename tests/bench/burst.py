"""How fast are many jobs taken that one commit queues, while as many runners wait?"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from tests.bench.crowd import LABELS, SETTINGS, Crowd
from tests.bench.figures import Figure
from tests.bench.ground import Companion, running
from tests.e2e.product import eventually

RUNNERS = 1_000
_PROCESSES, _CONNECTIONS = 2, 6  # of the web server, and for the polls of each
_PATIENCE, _LATE_SECONDS = 120.0, 2.0
_REASON = "beside the claim stand the job's payload and the answer, most of it built by the ORM: see claims over HTTP"


def measure(count: int = RUNNERS) -> list[Figure]:
    """As many jobs as runners; and then as many again, which bare SQL takes for other runners."""
    with running(**SETTINGS) as ground:
        crowd = Crowd(ground, jobs=2 * count)
        with crowd.waiting(count) as runners:
            with crowd.queuer(crowd.jobs[:count], rate=0) as queuer:
                committed = max(queuer.end(patience=_PATIENCE)["queued"].values())
            eventually(lambda: crowd.left() == 0, seconds=_PATIENCE, what="all jobs are taken", every=0.2)
            time.sleep(_LATE_SECONDS)  # what is taken is on its way to the runner
            told = runners.end()
        seconds = max(at for _, at in told["got"]) - committed
        bare = _bare_rate(crowd, count)
    doubled = len(told["got"]) - len({job for job, _ in told["got"]})
    wrong = (
        f"{len(told['got'])} jobs reached a runner, {doubled} of them twice" if len(told["got"]) != count else _REASON
    )
    return [
        Figure(
            f"burst: {count:,} jobs of one commit, {count:,} runners waiting",
            len(told["got"]) / seconds,
            "jobs/s",
            0.25,
            bare,
            "claims by bare SQL",
            better="more",
            note=wrong,
        )
    ]


def _bare_rate(crowd: Crowd, count: int) -> float:
    """Claims a second by the statement alone, with as many processes and connections as the server's."""
    rows = crowd.idle_runners(count)
    task = {"data": str(crowd.ground.product.data), "labels": LABELS, "database": crowd.ground.database}
    with crowd.queuer(crowd.jobs[count:], rate=0) as queuer:
        queuer.end(patience=_PATIENCE)
    some = [{**task, "connections": _CONNECTIONS, "runners": rows[place::_PROCESSES]} for place in range(_PROCESSES)]
    claimers = [Companion("claimers", one) for one in some]
    try:
        with ThreadPoolExecutor(_PROCESSES) as threads:
            stories = list(threads.map(lambda claimer: claimer.end(patience=_PATIENCE), claimers))
    finally:
        for claimer in claimers:
            claimer.kill()
    claimed = [at for story in stories for at in story["claimed"]]
    assert len(claimed) == count, f"bare SQL took {len(claimed)} of {count} jobs"
    return count / (max(claimed) - min(story["began"] for story in stories))

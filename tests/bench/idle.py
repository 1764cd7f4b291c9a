"""What do runners cost that only wait? Processor, connections and memory, beside the same server without them."""

from __future__ import annotations

import time

from tests.bench.crowd import SETTINGS, Crowd
from tests.bench.figures import Figure
from tests.bench.ground import Ground, running

RUNNERS, POLL_SECONDS = 5_000, 30.0
NOTHING_SECONDS, WAITING_SECONDS = 30.0, 60.0
_PARTS = ("uvicorn", "postgres", "manage.py watch")
_KIBIBYTE = 1024


def measure(
    count: int = RUNNERS, nothing_seconds: float = NOTHING_SECONDS, waiting_seconds: float = WAITING_SECONDS
) -> list[Figure]:
    with running(**SETTINGS) as ground:
        crowd = Crowd(ground, jobs=1)
        time.sleep(5)
        idle, memory, sessions = _percent(ground, nothing_seconds), ground.memory("uvicorn"), _sessions(ground)
        with crowd.waiting(count) as runners:
            time.sleep(POLL_SECONDS)  # the rush of their beginning is over, and each has polled again
            loaded, more_sessions = _percent(ground, waiting_seconds), _sessions(ground)
            grown = ground.memory("uvicorn") - memory
            told = runners.end()
    what = f"{count:,} idle runners polling {POLL_SECONDS:.0f} s"
    polls = f"{told['statuses'].get('204', 0)} polls ended from their beginning on, {len(told['problems'])} failed"
    if told["problems"]:
        polls += f", such as {told['problems'][0]}"
    parts = ", ".join(f"{part} {loaded[part] - idle[part]:.1f} %" for part in _PARTS)
    return [
        Figure(
            f"{what}: processor beyond the {sum(idle.values()):.1f} % of the same server doing nothing",
            sum(loaded.values()) - sum(idle.values()),
            "% of a core",
            10,
            note=f"{parts}; {polls}",
        ),
        Figure(f"{what}: database connections more, in all", max(0, more_sessions - sessions), "connections", 20),
        Figure(f"{what}: memory of the web processes", grown / count / _KIBIBYTE, "KiB a runner", 40),
    ]


def _percent(ground: Ground, seconds: float) -> dict[str, float]:
    """Of one core, by part."""
    before, began = ground.work(), time.monotonic()
    time.sleep(seconds)
    used, passed = ground.work() - before, time.monotonic() - began
    return {part: used[part] / passed * 100 for part in _PARTS}


def _sessions(ground: Ground) -> int:
    return int(ground.sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")[0][0])

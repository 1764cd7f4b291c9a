"""How many short jobs does the whole product bear at once, and is anything lost or doubled meanwhile?

Runners by protocol, in processes of their own, against `manage.py up` with its PostgreSQL, all on this machine.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.bench.fleet import lines_of
from tests.bench.ground import Companion, Ground, running
from tests.e2e.projects import Project

FLEETS = 2
LABELS = (["linux"], ["linux", "x64"], ["linux", "x64", "gpu"], ["linux", "arm"])
# No sweep makes good for a notification that woke nobody: a poll then waits for its end, from 10 s on.
SETTINGS = {
    "FORGE_SWEEP_SECONDS": "3600",
    # A machine that is busy with other things is slow to acknowledge, and no job shall be given twice for that.
    "FORGE_ACKNOWLEDGE_SECONDS": "300",
}
LOST_SECONDS = 8.0
SHAPES = {
    "single": (1, "one: {runs-on: linux, steps: [{run: echo}]}"),
    "chain": (
        3,
        "a: {runs-on: linux, steps: [{run: echo}]}\n"
        "  b: {needs: a, runs-on: [linux, x64], steps: [{run: echo}]}\n"
        "  c: {needs: [a, b], runs-on: linux, steps: [{run: echo}]}",
    ),
    "fan": (
        10,
        "first: {runs-on: linux, steps: [{run: echo}]}\n"
        "  each: {needs: first, runs-on: [linux, x64], strategy: {matrix: {n: [1, 2, 3, 4, 5, 6, 7, 8]}},"
        " steps: [{run: echo}]}\n"
        "  last: {needs: each, runs-on: linux, steps: [{run: echo}]}",
    ),
    "wide": (
        25,
        "test: {runs-on: linux, strategy: {matrix: {a: [1, 2, 3, 4, 5], b: [1, 2, 3, 4, 5]}}, steps: [{run: echo}]}",
    ),
    "held": (
        10,
        "test: {runs-on: [linux, gpu], strategy: {max-parallel: 4, matrix: {n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}},"
        " steps: [{run: echo}]}",
    ),
    "arm": (
        5,
        "test: {runs-on: [linux, arm], strategy: {matrix: {n: [1, 2, 3, 4, 5]}}, steps: [{run: echo}]}",
    ),
}


@dataclass
class Figures:
    runners: int
    jobs: int
    seconds: float = 0
    waits: list[float] = field(default_factory=list)  # from queue to claim, in seconds, sorted
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    repeats: int = 0
    deadlocks: int = 0
    errors: list[str] = field(default_factory=list)  # of the database's log
    longest_missed: float = 0  # seconds, see longest_missed
    ended: Counter[int] = field(default_factory=Counter)  # by job, as the runners were told
    slowest: dict[str, float] = field(default_factory=dict)  # seconds to an answer, by kind of call
    work: Counter[str] = field(default_factory=Counter)  # seconds of a processor, by part of the product

    @property
    def server_errors(self) -> int:
        return sum(count for status, count in self.statuses.items() if int(status) >= 500)

    def wait(self, share: float) -> float:
        return self.waits[min(len(self.waits) - 1, int(len(self.waits) * share))]

    def lines(self) -> list[str]:
        work = ", ".join(f"{part} {seconds * 1000 / self.jobs:.1f}" for part, seconds in sorted(self.work.items()))
        slowest = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in sorted(self.slowest.items()))
        calls = ", ".join(f"{count} x {status}" for status, count in sorted(self.statuses.items()))
        return [
            f"{self.runners} runners, {self.jobs} jobs in {self.seconds:.1f} s: {self.jobs / self.seconds:.0f} jobs/s, "
            f"{sum(self.statuses.values()) / self.seconds:.0f} calls/s",
            f"queue to claim: p50 {self.wait(0.5) * 1000:.0f} ms, p99 {self.wait(0.99) * 1000:.0f} ms",
            f"answers: {calls}; repeated calls: {self.repeats}",
            f"milliseconds of a processor a job: {work}",
            f"slowest answers in seconds: {slowest}",
            f"deadlocks: {self.deadlocks}; errors in the database's log: {len(self.errors)}",
            f"longest that a poll waited beside a queued job, and nobody took one: {self.longest_missed:.2f} s",
            *self.problems[:5],
            *self.errors[:5],
        ]


class Load:
    """A product that is loaded, and what its database says."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.product, self.sql = ground, ground.product, ground.sql
        self.project = Project.create(ground.person, "load", ground.folder / "tree")
        files = {
            f".github/workflows/{name}.yml": f"name: {name}\non: workflow_dispatch\njobs:\n  {jobs}\n"
            for name, (_, jobs) in SHAPES.items()
        }
        self.project.start(files)

    def dispatch(self, jobs: int) -> int:
        """Runs of all shapes in turn until there are that many jobs; how many there are."""
        names, queued = [], 0
        while queued < jobs:
            name = list(SHAPES)[len(names) % len(SHAPES)]
            if queued + SHAPES[name][0] > jobs:
                name = "single"
            names.append(name)
            queued += SHAPES[name][0]
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda name: self.project.dispatch(f"{name}.yml"), names))
        return queued

    def left(self) -> int:
        return int(self.sql("SELECT count(*) FROM ci_job WHERE state <> 'ended'")[0][0])

    def deadlocks(self) -> int:
        return int(self.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0])

    def database_errors(self) -> list[str]:
        log = (self.product.data / "logs" / "postgres.log").read_text(errors="replace")
        return [line for line in log.splitlines() if " ERROR: " in line or " FATAL: " in line or " PANIC: " in line]


@contextmanager
def loaded() -> Iterator[Load]:
    with running(**SETTINGS) as ground:
        yield Load(ground)


def bear(load: Load, *, runners: int, jobs: int, patience: float) -> Figures:
    """Let the runners work the jobs, for at most `patience` seconds, and measure."""
    registered = load.ground.register(runners, LABELS, api=load.project.api)
    figures = Figures(runners, jobs, deadlocks=-load.deadlocks())
    fleets = [_fleet(load.product.port, number, registered) for number in range(FLEETS)]
    began, work = time.time(), load.ground.work()
    try:
        load.dispatch(jobs)
        until = began + patience
        while load.left():
            assert time.time() < until, f"{load.left()} jobs are left after {patience} s\n{load.product.logs()}"
            time.sleep(0.25)
        figures.seconds, figures.work = time.time() - began, load.ground.work() - work
        stories = [fleet.end() for fleet in fleets]
    finally:
        for fleet in fleets:
            fleet.kill()
    for story in stories:
        figures.statuses.update(story["statuses"])
        figures.ended.update(story["ended"])
        figures.problems += story["problems"]
        figures.repeats += story["repeats"]
        for kind, seconds in story["slowest"].items():
            figures.slowest[kind] = max(seconds, figures.slowest.get(kind, 0.0))
    time.sleep(1.1)  # a session that idles tells its statistics within a second
    figures.deadlocks += load.deadlocks()
    figures.errors = load.database_errors()
    polls = [tuple(poll) for story in stories for poll in story["polls"]]
    times = load.sql(
        "SELECT runs_on, extract(epoch FROM queued_at)::float8, extract(epoch FROM assigned_at)::float8 FROM ci_job"
        " WHERE assigned_at IS NOT NULL"
    )
    figures.waits = sorted(taken - queued for _, queued, taken in times)
    figures.longest_missed = longest_missed(times, polls, [labels for _, labels in registered])
    return figures


def _fleet(port: int, number: int, registered: Sequence[tuple[str, list[str]]]) -> Companion:
    """One process of runners, the so-manieth of all."""
    size = -(-len(registered) // FLEETS)
    own = registered[number * size : (number + 1) * size]
    task = {"host": "127.0.0.1", "port": port, "first": number * size, "tokens": [token for token, _ in own]}
    return Companion("fleet", task)


def longest_missed(
    jobs: Sequence[tuple[Any, ...]], polls: Sequence[tuple[Any, ...]], labels: Sequence[Sequence[str]]
) -> float:
    """The longest time that a poll waited, a job was queued that its runner could have taken, and nobody took any.

    Where somebody took another, the machine was busy; where nobody did, nobody was woken. `jobs`: labels, when queued,
    when taken; `polls`: runner, start, end, and the job; `labels`: by runner. All times in seconds.
    """
    found = 0.0
    for has in {tuple(has) for has in labels}:
        fitting = [(queued, taken) for runs_on, queued, taken in jobs if set(runs_on) <= set(has)]
        takes = [min((queued for queued, _ in fitting), default=0.0), *sorted(taken for _, taken in fitting)]
        waits = [(began, ended) for runner, began, ended, _ in polls if tuple(labels[runner]) == has]
        for quiet_from, quiet_to in pairwise(takes):
            if quiet_to - quiet_from <= found:
                continue
            for queued, taken in fitting:
                both = (max(quiet_from, queued), min(quiet_to, taken))
                for began, ended in waits if both[1] - both[0] > found else ():
                    found = max(found, min(both[1], ended) - max(both[0], began))
    return found


def check_ends(load: Load, figures: Figures) -> list[str]:
    """What is wrong with how the jobs ended: nothing, one hopes."""
    wrong = []
    twice = load.sql("SELECT job_id, count(*) FROM ci_event WHERE to_state = 'ended' GROUP BY 1 HAVING count(*) <> 1")
    if jobs := [job for job, _ in twice if job is not None]:
        wrong.append(f"jobs that ended more than once: {jobs[:10]}")
    if claimed := load.sql("SELECT id, assignment FROM ci_job WHERE assignment <> 1"):
        wrong.append(f"jobs that were not assigned once: {claimed[:10]}")
    if ends := load.sql("SELECT id, conclusion FROM ci_job WHERE conclusion <> 'success'"):
        wrong.append(f"jobs that did not succeed: {ends[:10]}")
    if runs := load.sql("SELECT id, state, conclusion FROM ci_run WHERE conclusion IS DISTINCT FROM 'success'"):
        wrong.append(f"runs that did not succeed: {runs[:10]}")
    if len(figures.ended) != figures.jobs or set(figures.ended.values()) != {1}:
        wrong.append(f"{len(figures.ended)} jobs were ended by their runners, not {figures.jobs} once each")
    return wrong


def check_logs(load: Load, jobs: Sequence[int]) -> list[str]:
    """The jobs whose log is not exactly what their runner sent."""
    owner, api = load.project.owner, load.project.api
    with ThreadPoolExecutor(4) as threads:
        texts = threads.map(lambda job: owner.bytes_of(f"{api}/jobs/{job}/logs").decode().splitlines(), jobs)
    return [f"the log of job {job}: {text}" for job, text in zip(jobs, texts, strict=True) if text != lines_of(job)]


def main() -> int:
    print("load: 200 runners work 5000 short jobs", flush=True)
    with loaded() as load:
        figures = bear(load, runners=200, jobs=5000, patience=3000)
        for line in figures.lines():
            print(f"  {line}", flush=True)
        wrong = check_ends(load, figures) + check_logs(load, sorted(figures.ended))
    if figures.server_errors or figures.deadlocks:
        wrong.append("a client or the database met errors, see above")
    if figures.longest_missed > LOST_SECONDS:
        wrong.append(f"a wake-up was lost: see above, {LOST_SECONDS} s are allowed")
    for problem in wrong[:20]:
        print(f"  WRONG {problem}")
    return int(bool(wrong))

"""How many whole jobs a second does the API bear, beside the SQL statements of the same jobs alone?

A job: fetched, acknowledged, five reports of steps, 200 lines of log, completed: nine calls. CLIENTS runners at once,
each with one kept connection. Beside it the statements that one such life issues, as `bare_sql` records them, run for
other jobs of the same workflow in the same database: the same transactions, and as many sessions at once as runners
before, in as many processes as the server has.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.bench.bare_sql import PROCESSES, Client, Task, rate, recording, tell_numbers_apart
from tests.bench.figures import Figure
from tests.bench.fleet import Wire
from tests.bench.ground import Ground, running
from tests.bench.log_text import lines
from tests.e2e.projects import Project

CLIENTS = 8
STEPS = 5
LINES = 200
WORKFLOW = "name: one\non: workflow_dispatch\njobs:\n  one: {runs-on: linux, steps: [{run: echo}]}\n"
SETTINGS = {"FORGE_ACKNOWLEDGE_SECONDS": "300"}


class Runner:
    """A runner by protocol, with one connection."""

    def __init__(self, ground: Ground, number: int, token: str) -> None:
        self._wire = Wire("127.0.0.1", ground.product.port)
        self._token, self._polls, self._number = token, 0, number
        self._lines = [list(line) for line in lines(LINES, seed=number)]

    async def work(self) -> bool:
        """One job; False when there is none."""
        self._polls += 1
        status, body = await self._wire.call(
            "POST", "jobs/fetch", self._token, {"poll_id": f"r{self._number}-{self._polls}", "wait": 0}
        )
        if status == 204:
            return False
        assert status == 200, body
        job, token = body["job"]["id"], body["job"]["token"]
        await self._call("POST", f"jobs/{job}/heartbeat", token, {})
        for number in range(1, STEPS + 1):
            await self._call("PATCH", f"jobs/{job}/steps", token, {"steps": _steps(number)})
        await self._call("POST", f"jobs/{job}/log", token, {"offset": 0, "lines": self._lines})
        end = {"conclusion": "success", "outputs": {"answer": "42"}, "steps": _steps(STEPS + 1)}
        await self._call("POST", f"jobs/{job}/complete", token, end)
        return True

    async def _call(self, method: str, path: str, token: str, body: Any) -> None:
        status, answer = await self._wire.call(method, path, token, body)
        assert status == 200, f"{method} {path}: {status} {answer}"

    def close(self) -> None:
        self._wire.close()


def _steps(number: int) -> list[dict[str, Any]]:
    """What a runner says when step `number` begins: the one before has ended."""
    began = {"number": number, "name": f"Run step {number}", "state": "running"}
    ended = {"number": number - 1, "name": f"Run step {number - 1}", "state": "ended", "conclusion": "success"}
    share = LINES // STEPS
    ended |= {"first_line": (number - 2) * share, "line_count": share}
    return ([ended] if number > 1 else []) + ([began] if number <= STEPS else [])


async def _all(runners: list[Runner]) -> float:
    """Until no job is left; seconds."""

    async def until_none(runner: Runner) -> None:
        while await runner.work():
            pass

    began = time.monotonic()
    await asyncio.gather(*map(until_none, runners))
    took = time.monotonic() - began
    for runner in runners:
        runner.close()
    return took


async def _one(runner: Runner, jobs: int) -> None:
    for _ in range(jobs):
        assert await runner.work()
    runner.close()


def measure(*, jobs: int = 160, warm: int = 40) -> list[Figure]:
    """One row: jobs a second through the API, and by their SQL alone."""
    with running(**SETTINGS) as ground:
        tell_numbers_apart(ground)
        project = Project.create(ground.person, "jobs", ground.folder / "tree")
        project.start({".github/workflows/one.yml": WORKFLOW})
        tokens = [token for token, _ in ground.register(CLIENTS, [["linux"]], api=project.api)]

        def runners() -> list[Runner]:
            return [Runner(ground, number, token) for number, token in enumerate(tokens)]

        _queue(project, warm)
        asyncio.run(_all(runners()))
        _queue(project, jobs)
        before = ground.work()
        measured = jobs / asyncio.run(_all(runners()))
        work = ground.work() - before
        left = ground.sql("SELECT count(*) FROM ci_job WHERE conclusion IS DISTINCT FROM 'success'")
        assert left == [(0,)], left
        _queue(project, 1)
        with recording(ground) as statements:
            asyncio.run(_one(runners()[0], 1))
        _queue(project, jobs)
        bare = rate(_tasks(ground, tokens, statements, jobs))
        _check(ground)
        spent = ", ".join(f"{part} {seconds / jobs * 1000:.0f}" for part, seconds in sorted(work.items()))
        return [
            Figure(
                what=f"whole job through the API, {STEPS + 4} calls, {CLIENTS} runners",
                measured=measured,
                unit="jobs/s",
                beside=bare,
                beside_what=f"its {len(statements)} SQL statements alone",
                aim=0.1,
                better="more",
                note=f"Milliseconds of a processor a job: {spent}.",
            )
        ]


def _queue(project: Project, jobs: int) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: project.dispatch("one.yml"), range(jobs)))


def _tasks(ground: Ground, tokens: list[str], statements: list[str], jobs: int) -> list[Task]:
    rows = dict(ground.sql("SELECT token_hash, id FROM ci_runner"))
    known = [
        Client(rows[digest], digest) for digest in (hashlib.sha256(token.encode()).hexdigest() for token in tokens)
    ]
    runs = dict(ground.sql("SELECT id, run_id FROM ci_job WHERE state = 'queued'"))
    share = [known[number::PROCESSES] for number in range(PROCESSES)]
    return [Task(ground.database, statements, known[0], clients, runs, jobs // PROCESSES) for clients in share]


def _check(ground: Ground) -> None:
    """The lives that were run again are whole: each ended its job, its run, and wrote what belongs to it."""
    wrong = ground.sql(
        "SELECT count(*) FROM ci_job JOIN ci_run ON ci_run.id = run_id WHERE ci_job.state <> 'ended'"
        " OR ci_run.state <> 'ended' OR (SELECT count(*) FROM ci_step WHERE job_id = ci_job.id) <> %s"
        " OR (SELECT lines FROM ci_log WHERE job_id = ci_job.id) <> %s",
        STEPS,
        LINES,
    )
    assert wrong == [(0,)], f"{wrong} jobs of those that were run again are not as the API leaves them"

"""Many runners by protocol alone, in one process: `python -m tests.bench.fleet` reads its task as a line of JSON.

A client of its own: with any of the usual ones the runners would take more of the machine than the server.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

WAIT = 20.0
_ANSWER_SECONDS = 90.0
_PAUSE = 0.3
TIME = "2026-11-30T12:00:00.000000Z"
STEPS = [
    {"number": 1, "name": "Set up job", "state": "ended", "conclusion": "success"},
    {"number": 2, "name": "Run echo", "state": "running"},
]
LAST_STEP = [{"number": 2, "name": "Run echo", "state": "ended", "conclusion": "success", "line_count": 6}]
BATCHES = 2


def lines_of(job_id: int) -> list[str]:
    """What every job logs."""
    return [f"job {job_id} says line {number}" for number in range(6)]


@dataclass
class Task:
    """Whose runners, by their tokens, and where; `first` is the number of the first of them."""

    host: str
    port: int
    first: int
    tokens: list[str]


@dataclass
class Story:
    """What the runners met. `polls`: runner, start, end (Unix time), and the job it got, if any."""

    statuses: Counter[str] = field(default_factory=Counter)
    polls: list[tuple[int, float, float, int | None]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    repeats: int = 0
    slowest: dict[str, float] = field(default_factory=dict)  # seconds to the answer, by kind of call; polls may wait


class Wire:
    """One kept-alive connection of HTTP/1.1."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        """`body`: what becomes JSON, or its bytes. Raises OSError, TimeoutError; the connection is a new one then."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = (
            f"{method} /api/runner/v1/{path} HTTP/1.1\r\nHost: {self._address[0]}:{self._address[1]}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(*self._address)
                reader, writer = self._streams
                writer.write(head.encode() + content)
                return await self._read(reader)
        except (OSError, EOFError, TimeoutError):
            self.close()
            raise

    async def _read(self, reader: asyncio.StreamReader) -> tuple[int, Any]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        status = int(head[0].split()[1])
        lengths = [int(line.partition(":")[2]) for line in head if line.startswith("content-length:")]
        raw = await reader.readexactly(lengths[0]) if lengths else b""
        if "connection: close" in head:
            self.close()
        return status, json.loads(raw) if raw.startswith(b"{") else raw.decode("utf-8", "replace")

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Runner:
    def __init__(self, number: int, token: str, task: Task, story: Story) -> None:
        self._number, self._token, self._story = number, token, story
        self._wire = Wire(task.host, task.port)
        self._polls = 0

    async def work(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._polls += 1
            began = time.time()
            job = None
            try:
                status, body = await self._call("POST", "jobs/fetch", self._token, poll_id=f"p{self._polls}", wait=WAIT)
                job = body["job"] if status == 200 else None
            finally:  # one that was left waiting at the end counts too
                self._story.polls.append((self._number, began, time.time(), job and job["id"]))
            if job is not None:
                await self._do(job["id"], job["token"])
        self._wire.close()

    async def _do(self, job: int, token: str) -> None:
        lines = lines_of(job)
        size = len(lines) // BATCHES
        await self._call("POST", f"jobs/{job}/heartbeat", token)
        await self._call("PATCH", f"jobs/{job}/steps", token, steps=STEPS)
        for offset in range(0, len(lines), size):
            batch = [[TIME, text] for text in lines[offset : offset + size]]
            await self._call("POST", f"jobs/{job}/log", token, offset=offset, lines=batch)
        status, body = await self._call(
            "POST", f"jobs/{job}/complete", token, conclusion="success", steps=LAST_STEP, outputs={"answer": "42"}
        )
        if status == 200 and body["conclusion"] == "success":
            self._story.ended.append(job)

    async def _call(self, method: str, path: str, token: str, **body: Any) -> tuple[int, Any]:
        """As the bundled runner does: anew after a network fault or an error of the server."""
        kind = path.rpartition("/")[2]
        while True:
            began = time.monotonic()
            try:
                status, answer = await self._wire.call(method, path, token, body)
            except (OSError, EOFError, TimeoutError) as error:
                status, answer = 599, repr(error)
            self._story.statuses[str(status)] += 1
            took = time.monotonic() - began - (WAIT if kind == "fetch" else 0)
            self._story.slowest[kind] = max(took, self._story.slowest.get(kind, 0.0))
            if status < 500:
                if status not in (200, 204):
                    self._note(f"{method} {path}: {status} {answer}")
                return status, answer
            self._story.repeats += 1
            self._note(f"{method} {path}: {status} {answer}")
            await asyncio.sleep(_PAUSE)

    def _note(self, problem: str) -> None:
        if len(self._story.problems) < 100:
            self._story.problems.append(problem[:300])


async def run(task: Task) -> Story:
    """Until a line comes on the standard input."""
    story, stop = Story(), asyncio.Event()
    runners = [Runner(number, token, task, story) for number, token in enumerate(task.tokens, task.first)]
    working = [asyncio.create_task(runner.work(stop)) for runner in runners]
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    stop.set()
    # All jobs have ended: whoever waits now has none to lose.
    done, waiting = await asyncio.wait(working, timeout=1)
    for late in waiting:
        late.cancel()
    for one in done:
        one.result()
    await asyncio.gather(*waiting, return_exceptions=True)
    return story


def main() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    task = Task(**json.loads(sys.stdin.readline()))
    print(json.dumps(vars(asyncio.run(run(task)))), flush=True)


if __name__ == "__main__":
    main()

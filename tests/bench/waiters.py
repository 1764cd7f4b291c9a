"""Runners that only wait: `python -m tests.bench.waiters` reads its task as a line of JSON.

They poll until told to end. Who gets a job notes when, and asks for no other. One small protocol for each connection,
without streams or tasks: this process must not take from the server what is measured of it.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

import uvloop

_JOB = re.compile(rb'"job":\{"id":(\d+)')
_PAUSE = 1.0


@dataclass
class Task:
    """`rate`: how many begin in a second, so that they do not poll in step."""

    host: str
    port: int
    tokens: list[str]
    wait: float
    rate: float


@dataclass
class Story:
    """`got`: job and Unix time at which its runner had read all of it."""

    got: list[tuple[int, float]] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Waiter(asyncio.Protocol):
    """One runner on one kept-alive connection; anew after the server closed it."""

    def __init__(self, task: Task, token: str, story: Story) -> None:
        self._task, self._token, self._story = task, token, story
        self._polls, self._buffer = 0, b""
        self._transport: asyncio.Transport | None = None

    async def begin(self) -> None:
        while True:
            try:
                await asyncio.get_running_loop().create_connection(lambda: self, self._task.host, self._task.port)
                return
            except OSError as error:
                self._story.problems.append(repr(error))
                await asyncio.sleep(_PAUSE)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._buffer = cast(asyncio.Transport, transport), b""
        self._poll()

    def connection_lost(self, error: Exception | None) -> None:
        """After an error of the server, or at the end of this process."""
        loop = asyncio.get_running_loop()
        loop.call_later(_PAUSE, lambda: loop.create_task(self.begin()))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, complete, body = self._buffer.partition(b"\r\n\r\n")
        if not complete:
            return
        length = re.search(rb"content-length: *(\d+)", head.lower())
        if length is not None and len(body) < int(length[1]):
            return
        self._buffer = b""
        self._answered(int(head.split(b" ", 2)[1]), body)

    def _answered(self, status: int, body: bytes) -> None:
        self._story.statuses[str(status)] += 1
        if status == 200 and (found := _JOB.search(body)):
            self._story.got.append((int(found[1]), time.time()))
        elif status == 204:
            self._poll()
        else:
            self._story.problems.append(f"{status} {body[:200]!r}")
            asyncio.get_running_loop().call_later(_PAUSE, self._poll)

    def _poll(self) -> None:
        self._polls += 1
        content = b'{"poll_id":"p%d","wait":%g}' % (self._polls, self._task.wait)
        head = (
            f"POST /api/runner/v1/jobs/fetch HTTP/1.1\r\nHost: {self._task.host}:{self._task.port}\r\n"
            f"Authorization: Bearer {self._token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        assert self._transport is not None
        if self._transport.is_closing():
            return  # connection_lost begins anew
        self._transport.write(head.encode() + content)


async def run(task: Task) -> Story:
    """Until a line comes on the standard input."""
    story = Story()
    print("ready", flush=True)
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    began = time.monotonic()
    for number, token in enumerate(task.tokens):
        await asyncio.sleep(max(0.0, began + number / task.rate - time.monotonic()))
        await Waiter(task, token, story).begin()
    await ended
    return story


def main() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    task = Task(**json.loads(sys.stdin.readline()))
    print(json.dumps(vars(uvloop.run(run(task)))), flush=True)


if __name__ == "__main__":
    main()

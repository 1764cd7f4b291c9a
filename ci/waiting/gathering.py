"""How do many share one question to the database? Who asks while one is under way waits for the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")

_MOST_AT_ONCE = 1000


class Gathering(Generic[Q, A]):
    """`answer` takes what was asked, and returns an answer to each, in order. `pause`: how long, in seconds, others may
    join before it is called."""

    def __init__(self, answer: Callable[[Sequence[Q]], Awaitable[Sequence[A]]], pause: Callable[[], float]) -> None:
        self._answer, self._pause = answer, pause
        self._asked: list[tuple[Q, asyncio.Future[A]]] = []
        self._work: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """Raises what `answer` raises: all who asked together fail together."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._asked.append((question, future))
        if self._work is None:
            self._work = asyncio.create_task(self._answer_all())
        return await future

    async def _answer_all(self) -> None:
        try:
            while self._asked:
                await asyncio.sleep(self._pause())
                now, self._asked = self._asked[:_MOST_AT_ONCE], self._asked[_MOST_AT_ONCE:]
                await self._answer_some(now)
        finally:
            self._work = None

    async def _answer_some(self, asked: Sequence[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._answer([question for question, _ in asked])
        except Exception as error:
            for _, future in asked:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), answer in zip(asked, answers, strict=True):
            if not future.done():
                future.set_result(answer)

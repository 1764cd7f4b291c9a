"""Has the client of a waiting call hung up? Watched once its whole request has been read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class HangUp:
    """Owns `receive` from now on, until `close`."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._watching = asyncio.create_task(self._watch())

    @property
    def is_gone(self) -> bool:
        return self._watching.done()

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """True when the event came; False after `seconds`, or when the client hung up."""
        if event.is_set():
            return not self.is_gone
        if seconds <= 0:
            return False

        def end(_: object) -> None:
            event.set()

        # Whoever waits is told by the one event: a task for each wait would be most of what a wait costs.
        self._watching.add_done_callback(end)
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        finally:
            self._watching.remove_done_callback(end)
        return event.is_set() and not self.is_gone

    def close(self) -> None:
        self._watching.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

"""How is the message of a Connect call read? Unpacked, bounded before it is held, and few large ones at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ci.interop.connect_errors import ConnectError
from forge.git.bodies import BadBody, ClientGone, RequestBody

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_SECONDS = 60  # what the clients themselves give a call
# From this size on a body waits for its turn: memory is for many small calls, not for many large ones.
_LARGE = 2 * 1024 * 1024
_LARGE_AT_ONCE = 2
# A client that is still sending hears no answer, so what is too much is read and dropped, up to this.
_DROPPED = 192 * 1024 * 1024
_turns: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


class Turn:
    """Of a call with a large message: from when it becomes large until nothing of it is held any more."""

    def __init__(self) -> None:
        self._held: asyncio.Semaphore | None = None

    async def take(self) -> None:
        if self._held is None:
            turn = _turn()
            await turn.acquire()
            self._held = turn

    def end(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None


async def read(receive: Receive, *, encoding: str, largest: int, turn: Turn) -> bytes:
    """The body without its packing; of a large one the turn was taken, which the caller ends.

    Raises ConnectError, ClientGone.
    """
    if encoding.lower() not in ("", "identity", "gzip"):
        text = f"The content encoding {encoding[:20]!r} is not understood: send gzip or nothing."
        raise ConnectError("unimplemented", text, headers={"accept-encoding": "gzip"})
    try:
        async with asyncio.timeout(_SECONDS):
            return await _read(receive, encoding.lower(), largest, turn)
    except TimeoutError:
        raise ConnectError("deadline_exceeded", "The message did not arrive in time.") from None


class _Incoming:
    """`receive`, and whether the whole request has come."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.complete = False

    async def __call__(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        self.complete = not message.get("more_body", False)
        return message

    async def drop_rest(self) -> None:
        left = _DROPPED
        while left > 0 and not self.complete:
            message = await self()
            if message["type"] == "http.disconnect":
                raise ClientGone
            left -= len(message.get("body", b""))


async def _read(receive: Receive, encoding: str, largest: int, turn: Turn) -> bytes:
    incoming = _Incoming(receive)
    body = RequestBody(incoming, encoding=encoding, max_bytes=largest)
    pieces: list[bytes] = []
    try:
        async for piece in body:
            pieces.append(piece)
            if body.seen > _LARGE:
                await turn.take()
        return b"".join(pieces)
    except BadBody as error:
        if error.status != 413:
            raise ConnectError("invalid_argument", str(error)) from None
        pieces.clear()
        turn.end()
        await incoming.drop_rest()
        text = f"The message is larger than {largest} bytes, which is the limit here. Send less at once."
        raise ConnectError("resource_exhausted", text) from None


def _turn() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    if loop not in _turns:
        _turns.clear()  # of loops that have ended
        _turns[loop] = asyncio.Semaphore(_LARGE_AT_ONCE)
    return _turns[loop]

"""How is a git request answered? Streamed, never cached, or refused in a sentence that git shows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from forge.git.bodies import PATIENCE, ClientGone

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

# As git's own http-backend says it.
_NEVER_CACHED: Sequence[Header] = (
    (b"expires", b"Fri, 01 Jan 1980 00:00:00 GMT"),
    (b"pragma", b"no-cache"),
    (b"cache-control", b"no-cache, max-age=0, must-revalidate"),
)


class Refused(Exception):
    """The request is answered with an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str, *headers: Header) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers


class Response:
    """One HTTP response, begun with the first bytes written."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.content_type = "application/octet-stream"
        self.started = False

    async def write(self, data: bytes) -> None:
        """Send on as fast as the client reads. Raises ClientGone when it reads nothing any more."""
        if not self.started:
            self.started = True
            headers = [(b"content-type", self.content_type.encode()), *_NEVER_CACHED]
            await self._deliver({"type": "http.response.start", "status": 200, "headers": headers})
        await self._deliver({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self, data: bytes = b"") -> None:
        await self.write(data)
        await self._deliver({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse(self, refusal: Refused) -> None:
        """Answer with a refusal; where an answer has begun already, cut it off so that the client notices."""
        if self.started:
            raise ClientGone  # without its last chunk the answer is broken off
        body = f"{refusal}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            *_NEVER_CACHED,
            *refusal.headers,
        ]
        self.started = True
        await self._deliver({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._deliver({"type": "http.response.body", "body": body, "more_body": False})

    async def _deliver(self, message: MutableMapping[str, Any]) -> None:
        try:
            # Not wait_for, which in Python 3.11 loses a cancellation that comes with the result.
            async with asyncio.timeout(PATIENCE):
                await self._send(message)
        except (TimeoutError, OSError):
            raise ClientGone from None

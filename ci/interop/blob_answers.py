"""How is a request for bytes answered? As Azure's storage does, whose clients these are, or streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from xml.sax.saxutils import escape

from forge.git.bodies import PATIENCE, ClientGone, Receive

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# The bytes are other people's: no browser may take them for a page of this site.
_ALWAYS = {
    "cache-control": "private, no-store",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Refused(Exception):
    """`code` is Azure's: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes"""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Answer:
    """The response to one request."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.started = False
        self._bodiless = scope["method"] == "HEAD"
        self._receive = receive
        self._send = send

    async def created(self) -> None:
        await self._whole(201, b"", {})

    async def refuse(self, refusal: Refused) -> None:
        """Raises ClientGone where an answer has begun: without its end, its client notices."""
        if self.started:
            raise ClientGone
        body = (
            '<?xml version="1.0" encoding="utf-8"?>'
            f"<Error><Code>{refusal.code}</Code><Message>{escape(str(refusal))}</Message></Error>"
        )
        headers = {"content-type": "application/xml", "x-ms-error-code": refusal.code, **refusal.headers}
        await self._whole(refusal.status, body.encode(), headers)

    async def _whole(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        await self.start(status, {"content-length": str(len(body)), **headers})
        await self._deliver({"type": "http.response.body", "body": b"" if self._bodiless else body})

    async def start(self, status: int, headers: dict[str, str]) -> None:
        self.started = True
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in (_ALWAYS | headers).items()]
        await self._deliver({"type": "http.response.start", "status": status, "headers": pairs})

    async def write(self, data: bytes) -> None:
        """As fast as the client reads."""
        await self._deliver({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        await self._deliver({"type": "http.response.body", "body": b""})

    async def disconnect(self) -> None:
        """Return when the client is gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _deliver(self, message: MutableMapping[str, Any]) -> None:
        try:
            # Not wait_for, which in Python 3.11 loses a cancellation that comes with the result.
            async with asyncio.timeout(PATIENCE):
                await self._send(message)
        except (TimeoutError, OSError):
            raise ClientGone from None

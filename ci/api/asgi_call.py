"""How does a raw ASGI route read its request and answer it, in the same shapes as the views?"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from rest_framework.utils.encoders import JSONEncoder

from ci.api.bodies import BodyError, parse_object, too_large
from ci.api.errors import describe
from ci.waiting.hang_up import HangUp

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_LARGEST_BODY = 16 * 1024
_BODY_SECONDS = 30


class ClientGone(Exception):
    """Nobody is there to answer."""


class Call:
    """One request; `is_gone` once its client has hung up, which is watched while the call waits."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self._headers = dict(scope["headers"])
        self._receive = receive
        self._send = send
        self._began = False
        self._hang_up: HangUp | None = None

    @property
    def authorization(self) -> str:
        return self._headers.get(b"authorization", b"").decode("latin-1")

    @property
    def is_gone(self) -> bool:
        return self._hang_up is not None and self._hang_up.is_gone

    async def body(self) -> dict[str, Any]:
        """The JSON object sent. Raises BodyError, ClientGone."""
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                raw = await self._read()
        except TimeoutError:
            raise BodyError("The body did not arrive in time.", status=408, code="timeout") from None
        kind = self._headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        if raw and kind != "application/json":
            raise BodyError("The body must be application/json.", status=415, code="unsupported_media_type")
        self._hang_up = HangUp(self._receive)
        return parse_object(raw)

    async def _read(self) -> bytes:
        raw = b""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            raw += message.get("body", b"")
            if len(raw) > _LARGEST_BODY:
                raise too_large(_LARGEST_BODY)
            if not message.get("more_body", False):
                return raw

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """True when the event came; False after `seconds`, or when the client hung up."""
        return self._hang_up is not None and await self._hang_up.wait(event, seconds)

    async def answer(
        self, status: int, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> None:
        content = b"" if body is None else json.dumps(body, cls=JSONEncoder, separators=(",", ":")).encode()
        sent = {"cache-control": "no-store", **(headers or {})}
        if status != 204:
            sent |= {"content-type": "application/json", "content-length": str(len(content))}
        pairs = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
        self._began = True
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
        await self._send({"type": "http.response.body", "body": content})

    async def refuse(self, status: int, code: str, detail: str, **headers: str) -> None:
        await self.answer(status, {"code": code, "detail": detail}, headers)

    async def fail(self, error: Exception) -> None:
        """Answer with what went wrong, unless an answer has begun."""
        known = describe(error)
        if known is None:
            logger.error("a waiting call failed", exc_info=error)
        if self._began:
            return
        if known is None:
            await self.refuse(500, "error", "The server failed. The operator finds the cause in its log.")
        else:
            await self.answer(known.status, known.body, dict(known.headers))

    def close(self) -> None:
        if self._hang_up is not None:
            self._hang_up.close()

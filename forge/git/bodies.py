"""How is a request's body read without ever holding it? Piece by piece, unpacked, counted, with a patience."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

PIECE = 64 * 1024  # bytes handed on at once
PATIENCE = 300.0  # seconds without a byte from a client that owes us some


class ClientGone(Exception):
    """The connection ended, or its client sends nothing any more."""


class BadBody(Exception):
    """The body cannot be read; `.status` is the HTTP status to answer."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class RequestBody:
    """The body of one ASGI request, at most `max_bytes` after unpacking."""

    def __init__(self, receive: Receive, *, encoding: str, max_bytes: int) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self.seen = 0  # bytes, unpacked
        self._unpacker = _Gunzip() if encoding in ("gzip", "x-gzip") else None
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise BadBody(415, f"Content-Encoding {encoding[:20]!r} is not understood; gzip is.")
        self.complete = False
        self._pieces = self._read()

    def __aiter__(self) -> AsyncIterator[bytes]:
        # One iterator for the whole body: who comes later continues where the first stopped.
        return self._pieces

    async def disconnect(self) -> None:
        """Return when the client is gone. Only after the whole body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _read(self) -> AsyncIterator[bytes]:
        while not self.complete:
            message = await self._next()
            last = not message.get("more_body", False)
            for piece in self._unpacked(message.get("body", b""), last=last):
                self.seen += len(piece)
                if self.seen > self._max_bytes:
                    raise BadBody(413, f"The request is larger than {self._max_bytes} bytes, which is the limit here.")
                yield piece
            self.complete = last

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout(PATIENCE):
                message = await self._receive()
        except TimeoutError:
            raise ClientGone from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message

    def _unpacked(self, data: bytes, *, last: bool) -> Any:
        if self._unpacker is None:
            return [data] if data else []
        return self._unpacker.feed(data, last=last)


class _Gunzip:
    """gzip undone in pieces of at most PIECE bytes, however small the packed form of a huge body is."""

    def __init__(self) -> None:
        self._inflate = self._new()

    @staticmethod
    def _new() -> Any:
        return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    def feed(self, data: bytes, *, last: bool) -> Any:
        try:
            while data:
                if self._inflate.eof:  # several gzip members are one body
                    self._inflate = self._new()
                if piece := self._inflate.decompress(data, PIECE):
                    yield piece
                data = self._inflate.unconsumed_tail or self._inflate.unused_data
            while not self._inflate.eof and (piece := self._inflate.decompress(b"", PIECE)):
                yield piece
        except zlib.error:
            raise BadBody(400, "The body is not the gzip that its Content-Encoding promises.") from None
        if last and not self._inflate.eof:
            raise BadBody(400, "The gzip body ends too early.")

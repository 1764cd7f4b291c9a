"""What must be done to a request before WSGI can serve it? Its body gets a length, and slow senders hold no thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = dict[str, Any]

# Read before a thread is taken. Longer bodies with a length are read by the thread as they come.
MAX_BUFFERED = 1024 * 1024  # bytes
_PATIENCE = 60.0  # seconds


class _Unreadable(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def prepared(scope: Scope, receive: Receive, send: Send) -> tuple[Scope, Receive] | None:
    """The request as WSGI can take it; None when it was answered here, or its client is gone.

    A body without a length (chunked) would reach Django empty: WSGI knows CONTENT_LENGTH only. Such a body is
    collected up to 1 MiB; a longer one is answered 411.
    """
    headers = dict(scope["headers"])
    length, chunked = headers.get(b"content-length"), b"transfer-encoding" in headers
    clean = {**scope, "headers": _unambiguous(scope), "query_string": _ascii(scope["query_string"])}
    if not chunked and (length is None or int(length) > MAX_BUFFERED):
        return clean, receive
    try:
        body = await _collect(receive)
    except _Unreadable as error:
        await _answer(send, error)
        return None
    if body is None:
        return None
    kept = [(name, value) for name, value in clean["headers"] if name not in (b"content-length", b"transfer-encoding")]
    clean["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
    return clean, _replay(body, receive)


async def _collect(receive: Receive) -> bytes | None:
    body = bytearray()
    while True:
        try:
            async with asyncio.timeout(_PATIENCE):
                message = await receive()
        except TimeoutError:
            raise _Unreadable(408, "The request's body did not arrive.") from None
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_BUFFERED:
            raise _Unreadable(411, f"A body of more than {MAX_BUFFERED} bytes needs a Content-Length.")
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _unambiguous(scope: Scope) -> list[tuple[bytes, bytes]]:
    # In WSGI "x_forwarded_for" would pass for "x-forwarded-for", which proxies set and clients must not.
    return [(name, value) for name, value in scope["headers"] if b"_" not in name]


def _ascii(query: bytes) -> bytes:
    return query if query.isascii() else quote(query, safe="%&=+;/?:@!$'()*,-._~").encode()


async def _answer(send: Send, error: _Unreadable) -> None:
    body = f"{error}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send(
        {"type": "http.response.start", "status": error.status, "headers": [*headers, (b"connection", b"close")]}
    )
    await send({"type": "http.response.body", "body": body})

"""What do the raw applications share that store a part of something for the older services? How one is answered."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from django.conf import settings

from ci.interop.bodies import BadBody, ClientGone, HeardOut
from ci.interop.rest_errors import describe
from ci.interop.rest_views import Answer
from forge.git.bodies import Receive
from forge.git.responses import Send

# Raises what `describe` describes; and ClientGone, with nothing stored.
Store = Callable[[dict[str, Any], Receive], Awaitable[Answer]]

_QUEUE_SECONDS = 30.0
_places = asyncio.Semaphore(settings.BLOB_TRANSFERS)


async def serve(store: Store, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Answer one request with what `store` answers, or with what went wrong."""
    body = HeardOut(receive)
    try:
        async with _place():
            status, said = await store(scope, body)
    except ClientGone:
        return
    except Exception as error:
        status, said = describe(error)
        await body.drain()
    await _answer(send, status, said)


@contextlib.asynccontextmanager
async def _place() -> AsyncIterator[None]:
    """A place among the uploads that may go on at once. Raises BadBody."""
    try:
        async with asyncio.timeout(_QUEUE_SECONDS):
            await _places.acquire()
    except TimeoutError:
        raise BadBody(503, "The forge is busy with other uploads; try again.") from None
    try:
        yield
    finally:
        _places.release()


async def _answer(send: Send, status: int, body: dict[str, Any] | None) -> None:
    headers = [(b"cache-control", b"no-store")]
    content = b"" if body is None else json.dumps(body).encode()
    if body is not None:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})

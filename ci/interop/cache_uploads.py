"""How do the bytes of a cache come from older clients? Part by part, by PATCH with a Content-Range, often chunked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from django.conf import settings

from ci.interop.bodies import BadBody, ClientGone, ContentRange, content_range, headers_of, spool
from ci.interop.caches_v1 import BASE
from ci.interop.rest_errors import describe
from ci.interop.runtime_calls import caller
from ci.interop.threads import in_database
from ci.lifecycle import caches
from ci.models import Blob
from ci.storage import blobs
from forge.git.bodies import Receive
from forge.git.responses import Send

_ADDRESS = re.compile(rf"/{BASE}caches/([1-9][0-9]{{0,17}})")
_QUEUE_SECONDS = 30.0
_places = asyncio.Semaphore(settings.BLOB_TRANSFERS)


def is_upload(scope: dict[str, Any]) -> bool:
    """Whether it is a part of a cache; all other calls of caches are Django's."""
    return scope["method"] == "PATCH" and _ADDRESS.fullmatch(scope["path"]) is not None


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    try:
        await _store(scope, receive)
        status, body = 204, None
    except ClientGone:
        return
    except Exception as error:
        status, body = describe(error)
    await _answer(send, status, body)


async def _store(scope: dict[str, Any], receive: Receive) -> None:
    """Raises what `describe` describes; and ClientGone, with nothing stored."""
    headers = headers_of(scope)
    found = _ADDRESS.fullmatch(scope["path"])
    assert found is not None
    blob = await in_database(_reserved, headers.get("authorization"), int(found[1]))
    part = content_range(headers.get("content-range", ""))
    _check_size(part)
    async with _place(), spool(receive, limit=part.end - part.start, headers=headers) as (file, size):
        if size != part.end - part.start:
            raise BadBody(400, f"The body has {size} bytes, and its Content-Range {part.end - part.start}.")
        await in_database(blobs.put_part, blob=blob, block_id=blobs.offset_id(part.start), source=file, size=size)


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


def _reserved(authorization: str | None, entry_id: int) -> Blob:
    """Raises Unauthenticated, JobEnded, NotFound, BlobCommitted."""
    entry = caches.reservation(job=caller(authorization), entry_id=entry_id)
    if entry.finalized_at is not None:
        raise blobs.BlobCommitted
    return entry.blob


def _check_size(part: ContentRange) -> None:
    """Before a byte is read. Raises BlobTooLarge."""
    if part.end - part.start > settings.BLOB_PART_BYTES:
        raise blobs.BlobTooLarge("part", settings.BLOB_PART_BYTES)
    if part.end > settings.BLOB_BYTES:
        raise blobs.BlobTooLarge("cache", settings.BLOB_BYTES)


async def _answer(send: Send, status: int, body: dict[str, Any] | None) -> None:
    content = b"" if body is None else json.dumps(body).encode()
    headers = [(b"cache-control", b"no-store")]
    if body is not None:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})

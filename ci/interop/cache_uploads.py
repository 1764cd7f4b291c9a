"""How do the bytes of a cache come from older clients? Part by part, by PATCH with a Content-Range, often chunked."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings

from ci.interop import rest_uploads
from ci.interop.bodies import BadBody, ContentRange, content_range, headers_of, spool
from ci.interop.caches_v1 import BASE
from ci.interop.rest_views import Answer
from ci.interop.runtime_calls import caller
from ci.interop.threads import in_database, to_storage
from ci.lifecycle import caches
from ci.models import Blob
from ci.storage import blobs
from forge.git.bodies import Receive
from forge.git.responses import Send

_ADDRESS = re.compile(rf"/{BASE}caches/([1-9][0-9]{{0,17}})")


def is_upload(scope: dict[str, Any]) -> bool:
    """Whether it is a part of a cache; all other calls of caches are Django's."""
    return scope["method"] == "PATCH" and _ADDRESS.fullmatch(scope["path"]) is not None


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    await rest_uploads.serve(_store, scope, receive, send)


async def _store(scope: dict[str, Any], receive: Receive) -> Answer:
    headers = headers_of(scope)
    found = _ADDRESS.fullmatch(scope["path"])
    assert found is not None
    blob = await in_database(_reserved, headers.get("authorization"), int(found[1]))
    part = content_range(headers.get("content-range", ""))
    _check_size(part)
    async with spool(receive, limit=part.end - part.start, headers=headers) as (file, size):
        if size != part.end - part.start:
            raise BadBody(400, f"The body has {size} bytes, and its Content-Range {part.end - part.start}.")
        await to_storage(blobs.put_part, blob=blob, block_id=blobs.offset_id(part.start), source=file, size=size)
    return 204, None


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

"""What does a PUT to a signed address store? A block, the list that joins blocks, or a whole blob at once."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import BinaryIO
from uuid import UUID

from django.conf import settings

from ci.interop import block_lists, bodies
from ci.interop.blob_answers import Refused
from ci.interop.threads import in_database, locally, to_storage
from ci.lifecycle import artifact_quota
from ci.models import Blob
from ci.storage import blobs

_CONTENT_TYPE = re.compile(r"[\x20-\x7e]{1,255}")


async def put(key: UUID, query: dict[str, str], headers: dict[str, str], receive: bodies.Receive) -> None:
    """Raises Refused, BadBody, ClientGone, BadBlockList, QuotaExceeded, BlobError: nothing is stored then."""
    blob = await in_database(_blob, key)
    match query.get("comp"):
        case "block":
            # Base64 has no spaces: one was a plus that its client did not quote.
            block_id = query.get("blockid", "").replace(" ", "+")
            if not block_lists.is_block_id(block_id):
                raise _bad_query("blockid must be base64 of 1 to 64 bytes.")
            await _store(
                blob,
                receive,
                headers,
                lambda file, size: blobs.put_part(blob=blob, block_id=block_id, source=file, size=size),
            )
        case "blocklist":
            document = await bodies.read(receive, limit=block_lists.MOST_BYTES)
            ids = await locally(block_lists.block_ids, document)
            await in_database(blobs.commit, blob=blob, block_ids=ids, content_type=_content_type(headers))
        case None:
            if headers.get("x-ms-blob-type", "").lower() != "blockblob":
                raise Refused(400, "InvalidHeaderValue", "x-ms-blob-type must be BlockBlob.")
            await _store(
                blob,
                receive,
                headers,
                lambda file, size: blobs.put_whole(
                    blob=blob, source=file, size=size, content_type=_content_type(headers)
                ),
            )
        case _:
            raise _bad_query("comp must be block or blocklist.")


def _bad_query(message: str) -> Refused:
    return Refused(400, "InvalidQueryParameterValue", message)


def _blob(key: UUID) -> Blob:
    blob = Blob.objects.filter(key=key).first()
    if blob is None:
        raise blobs.BlobMissing
    return blob


async def _store(
    blob: Blob, receive: bodies.Receive, headers: dict[str, str], keep: Callable[[BinaryIO, int], object]
) -> None:
    expected = headers.get("content-md5")
    md5 = hashlib.md5(usedforsecurity=False) if expected is not None else None
    async with bodies.spool(receive, limit=settings.BLOB_PART_BYTES, headers=headers, digest=md5) as (file, size):
        if md5 is not None and base64.b64encode(md5.digest()).decode() != expected:
            raise Refused(400, "Md5Mismatch", "The body is not the one that its Content-MD5 describes; send it again.")
        await in_database(artifact_quota.check_block, blob, size=size)
        await to_storage(keep, file, size)


def _content_type(headers: dict[str, str]) -> str | None:
    given = headers.get("x-ms-blob-content-type", "").strip()
    return given if _CONTENT_TYPE.fullmatch(given) else None

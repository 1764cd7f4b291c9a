"""How is a blob handed out? Streamed as fast as its client reads, whole or in a range, and never as a page."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Generator
from urllib.parse import quote
from uuid import UUID

from ci.interop.blob_answers import Answer, Refused
from ci.interop.bodies import ClientGone
from ci.interop.ranges import RangeNotSatisfiable, wanted
from ci.interop.threads import from_storage, in_database, packing
from ci.lifecycle import artifact_downloads, artifacts
from ci.models import Blob
from ci.storage import blobs

_Place = Callable[..., Awaitable[bytes]]  # the threads that make the next piece
# What was stored is not trusted with the lines of a header.
_LINE = re.compile(r"[\x20-\x7e]+")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[A-Za-z0-9 !#$&+.^_`|~()\[\]{}@,=-]+")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 !#$&+.^_`|~()\[\]{}@,=-]")


async def get(key: UUID, filename: str, headers: dict[str, str], answer: Answer, *, bodiless: bool) -> None:
    """Raises BlobMissing, BlobLost, Refused, ClientGone."""
    blob = await in_database(_committed, key)
    assert blob.size is not None
    described = _described(blob, filename)
    start, end, status = 0, blob.size, 200
    try:
        found = wanted(_range_asked(headers, described["etag"]), size=blob.size)
    except RangeNotSatisfiable:
        raise Refused(
            416, "InvalidRange", f"The blob has {blob.size} bytes.", content_range=f"bytes */{blob.size}"
        ) from None
    if found is not None:
        (start, end), status = found, 206
        described["content-range"] = f"bytes {start}-{end - 1}/{blob.size}"
    described["content-length"] = str(end - start)
    if bodiless:
        await answer.start(status, described)
        await answer.finish()
        return
    await _stream(await in_database(blobs.read, blob, start=start, end=end), status, described, answer, from_storage)


async def get_folder(artifact_id: int, filename: str, answer: Answer, *, bodiless: bool) -> None:
    """Its zip, of whose length nobody knows before its end. Raises NotFound, BlobTooLarge, BlobLost, ClientGone."""
    pieces = await in_database(artifact_downloads.folder_zip, artifact_id)
    described = {"content-type": artifacts.ZIP, "content-disposition": attachment(filename or f"{artifact_id}.zip")}
    if bodiless:
        await answer.start(200, described)
        await answer.finish()
        return
    await _stream(pieces, 200, described, answer, packing)


def _committed(key: UUID) -> Blob:
    blob = Blob.objects.filter(key=key, committed_at__isnull=False).first()
    if blob is None:
        raise blobs.BlobMissing
    return blob


def _range_asked(headers: dict[str, str], etag: str) -> str:
    """The range, Azure's own header first; none where it is for another version than this, the only one there is."""
    if headers.get("if-range", etag) != etag:
        return ""
    return headers.get("x-ms-range") or headers.get("range", "")


def _described(blob: Blob, filename: str) -> dict[str, str]:
    assert blob.committed_at is not None
    described = {
        "content-type": blob.content_type if _LINE.fullmatch(blob.content_type) else "application/octet-stream",
        "content-disposition": attachment(filename or str(blob.key)),
        "accept-ranges": "bytes",
        "etag": f'"{blob.key}"',
        "last-modified": blob.committed_at.strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "x-ms-blob-type": "BlockBlob",
    }
    if _TOKEN.fullmatch(blob.content_encoding):
        described["content-encoding"] = blob.content_encoding
    return described


def attachment(filename: str) -> str:
    """A Content-Disposition (RFC 6266) for any name, with a plain one beside it for clients that know no other."""
    if _PLAIN.fullmatch(filename):
        return f'attachment; filename="{filename}"'
    return f"attachment; filename=\"{_NOT_PLAIN.sub('_', filename)}\"; filename*=UTF-8''{quote(filename, safe='')}"


async def _stream(
    pieces: Generator[bytes, None, None], status: int, headers: dict[str, str], answer: Answer, at: _Place
) -> None:
    gone = asyncio.create_task(answer.disconnect())
    try:
        # The first comes before the answer begins: where the storage fails, there is still a status to say so.
        piece = await at(next, pieces, b"")
        await answer.start(status, headers)
        while piece:
            if gone.done():
                raise ClientGone  # nothing else tells: the server drops what is sent to nobody
            await answer.write(piece)
            piece = await at(next, pieces, b"")
        await answer.finish()
    finally:
        gone.cancel()
        with contextlib.suppress(ValueError):  # a thread that was not waited for still reads; it closes the file
            pieces.close()

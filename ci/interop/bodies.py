"""How does the body of a raw ASGI request of any size come to a file, and never into memory?"""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from ci.interop.threads import locally
from forge.git.bodies import BadBody, ClientGone, Message, Receive, RequestBody

if TYPE_CHECKING:
    from _hashlib import HASH

__all__ = [
    "BadBody",
    "ClientGone",
    "ContentRange",
    "HeardOut",
    "content_range",
    "declared_length",
    "headers_of",
    "read",
    "spool",
]

# In memory up to this; written in pieces of it, each in a thread.
_IN_MEMORY = 256 * 1024
# Beyond the limit a body is read on this far, for most clients hear an answer only when they have sent all.
_OVERSHOOT = 64 * 1024 * 1024
# For so long altogether, and for its next bytes, in seconds.
_DRAIN_SECONDS = 30.0
_DRAIN_PATIENCE = 2.0
_LENGTH = re.compile(r"[0-9]{1,18}")
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/(?:\*|([0-9]{1,18}))")


def headers_of(scope: dict[str, Any]) -> dict[str, str]:
    """Names in lower case. Of a header that was sent twice, the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def declared_length(headers: dict[str, str]) -> int | None:
    """The Content-Length in bytes, None where the body comes in chunks. Raises BadBody."""
    given = headers.get("content-length")
    if given is None:
        return None
    if not _LENGTH.fullmatch(given):
        raise BadBody(400, "The Content-Length is not a number.")
    return int(given)


class ContentRange(NamedTuple):
    """Bytes `start` to before `end` of `total`, None where the client does not know yet."""

    start: int
    end: int
    total: int | None


def content_range(text: str) -> ContentRange:
    """What `bytes s-e/total` says (RFC 9110, section 14.4). Raises BadBody."""
    found = _CONTENT_RANGE.fullmatch(text.strip())
    if found is None:
        raise BadBody(400, "The Content-Range is not of the form 'bytes <first>-<last>/<total or *>'.")
    start, last = int(found[1]), int(found[2])
    total = int(found[3]) if found[3] else None
    if last < start or (total is not None and last >= total):
        raise BadBody(400, "The Content-Range ends before it begins, or after the total.")
    return ContentRange(start, last + 1, total)


async def read(receive: Receive, *, limit: int) -> bytes:
    """A small body, of at most `limit` bytes. Raises BadBody (413), ClientGone."""
    return b"".join([piece async for piece in RequestBody(receive, encoding="", max_bytes=limit)])


class HeardOut:
    """An ASGI `receive` whose rest can be thrown away.

    Who is refused may be sending still, and hears nothing before all is sent.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self._ended = message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        """Read what comes, but not for ever, nor from a client that waits to be asked for it."""
        seen = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._ended and seen < _OVERSHOOT:
                    async with asyncio.timeout(_DRAIN_PATIENCE):
                        seen += len((await self()).get("body", b""))


@contextlib.asynccontextmanager
async def spool(
    receive: Receive, *, limit: int, headers: dict[str, str] | None = None, digest: HASH | None = None
) -> AsyncIterator[tuple[BinaryIO, int]]:
    """`async with spool(…) as (file, size)`: the body as it came, in a file that is gone afterwards; `digest` is fed.

    Raises BadBody: 413 over `limit`, at once where the headers say so, and 400 where it is not as long as they say.
    ClientGone where the client left: then nothing of the body may be kept.
    """
    declared = declared_length(headers or {})
    if declared is not None and declared > limit + _OVERSHOOT:
        raise BadBody(413, _too_large(limit))
    # Where the system can, the file has no name: a kill leaves nothing behind.
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as target:
        size = 0
        async for data in _gathered(receive, limit):
            size += len(data)
            if size <= limit:
                if digest is not None:
                    digest.update(data)
                await locally(target.write, data)
        if size > limit:
            raise BadBody(413, _too_large(limit))
        if declared is not None and declared != size:
            raise BadBody(400, "The body is not as long as the Content-Length says.")
        target.seek(0)
        yield cast(BinaryIO, target), size


async def _gathered(receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """The body in larger pieces: one change of threads for each."""
    gathered = bytearray()
    async for piece in _pieces(receive, limit):
        gathered += piece
        if len(gathered) >= _IN_MEMORY:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


async def _pieces(receive: Receive, limit: int) -> AsyncIterator[bytes]:
    try:
        async for piece in RequestBody(receive, encoding="", max_bytes=limit + _OVERSHOOT):
            yield piece
    except BadBody as error:
        raise BadBody(error.status, _too_large(limit)) from None


def _too_large(limit: int) -> str:
    return f"The request is larger than {limit} bytes, which is the limit here."

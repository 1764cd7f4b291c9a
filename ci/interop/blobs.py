"""How do the bytes of artifacts and caches come and go? As block blobs of Azure's storage, at signed addresses.

https://learn.microsoft.com/rest/api/storageservices/put-block, …/put-block-list, …/put-blob and …/get-blob; of them
what the clients of artifacts and caches use.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError

from ci.interop import bodies, downloads, uploads
from ci.interop.blob_answers import Answer, Refused, Send
from ci.interop.block_lists import BadBlockList
from ci.lifecycle.artifact_quota import QuotaExceeded
from ci.lifecycle.errors import NotFound
from ci.storage import blobs, signed_urls

_log = logging.getLogger(__name__)
_ADDRESS = re.compile(
    signed_urls.PREFIX + r"(?:(?P<purpose>upload|download)/"
    r"(?P<key>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|(?P<folder>folder)/(?P<id>[0-9]{1,18}))"
    r"(?:/(?P<filename>.+))?",
    re.DOTALL,
)
_QUEUE_SECONDS = 30.0
_METHODS = {"upload": ("PUT",), "download": ("GET", "HEAD"), "folder": ("GET", "HEAD")}
# By purpose: slow downloads do not keep uploads out.
_places = {purpose: asyncio.Semaphore(settings.BLOB_TRANSFERS) for purpose in _METHODS}


def is_blob(path: str) -> bool:
    """Whether the address is one of this application's."""
    return path.startswith(signed_urls.PREFIX)


async def application(scope: dict[str, Any], receive: bodies.Receive, send: Send) -> None:
    body = bodies.HeardOut(receive)
    answer = Answer(scope, body, send)
    try:
        await _serve(scope, body, answer)
    except bodies.ClientGone:
        pass
    except Exception as error:
        refusal = error if isinstance(error, Refused) else _refusal(error)
        await body.drain()
        with contextlib.suppress(bodies.ClientGone):
            await answer.refuse(refusal)


async def _serve(scope: dict[str, Any], receive: bodies.Receive, answer: Answer) -> None:
    found = _ADDRESS.fullmatch(scope["path"])
    if found is None:
        raise Refused(404, "ResourceNotFound", "There is nothing at this address.")
    purpose, filename = found["purpose"] or found["folder"], found["filename"] or ""
    query = _query(scope)
    proof = {"expires": query.get("se", ""), "signature": query.get("sig", "")}
    if purpose == "upload":
        signed_urls.check_upload(key=UUID(found["key"]), **proof)
    elif purpose == "download":
        signed_urls.check_download(key=UUID(found["key"]), filename=filename, **proof)
    else:
        signed_urls.check_folder(artifact_id=int(found["id"]), filename=filename, **proof)
    if scope["method"] not in _METHODS[purpose]:
        allowed = ", ".join(_METHODS[purpose])
        raise Refused(405, "UnsupportedHttpVerb", f"Use {allowed}.", allow=allowed)
    headers = bodies.headers_of(scope)
    bodiless = scope["method"] == "HEAD"
    async with _place(purpose):
        if purpose == "upload":
            await uploads.put(UUID(found["key"]), query, headers, receive)
            await answer.created()
        elif purpose == "download":
            await downloads.get(UUID(found["key"]), filename, headers, answer, bodiless=bodiless)
        else:
            await downloads.get_folder(int(found["id"]), filename, answer, bodiless=bodiless)


def _query(scope: dict[str, Any]) -> dict[str, str]:
    try:
        given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise Refused(400, "InvalidQueryParameterValue", "The query has too many parts.") from None
    return {name: values[0] for name, values in given.items()}


@contextlib.asynccontextmanager
async def _place(purpose: str) -> AsyncIterator[None]:
    """A place among the transfers that may go on at once."""
    try:
        async with asyncio.timeout(_QUEUE_SECONDS):
            await _places[purpose].acquire()
    except TimeoutError:
        raise _busy("The forge is busy with other uploads and downloads; try again.") from None
    try:
        yield
    finally:
        _places[purpose].release()


def _busy(message: str) -> Refused:
    return Refused(503, "ServerBusy", message, retry_after="10")


def _refusal(error: Exception) -> Refused:
    """What went wrong, in Azure's words."""
    match error:
        case signed_urls.SignatureInvalid():
            return Refused(403, "AuthenticationFailed", str(error))
        case bodies.BadBody(status=413):
            return Refused(413, "RequestBodyTooLarge", str(error))
        case bodies.BadBody():
            return Refused(error.status, "InvalidHeaderValue", str(error))
        case BadBlockList():
            return Refused(400, "InvalidXmlDocument", str(error))
        case QuotaExceeded():
            return Refused(413, "RequestBodyTooLarge", error.detail)
        case NotFound():
            return Refused(404, "BlobNotFound", error.detail)
        case blobs.BlobMissing():
            return Refused(404, "BlobNotFound", str(error))
        case blobs.BlobCommitted():
            return Refused(409, "BlobAlreadyExists", str(error))
        case blobs.BlockMissing() | blobs.BlockRepeated():
            return Refused(400, "InvalidBlockList", str(error))
        case blobs.BlobTooLarge():
            return Refused(413, "RequestBodyTooLarge", str(error))
        case blobs.PutTooSlow():
            return _busy(str(error))
        case OperationalError() | InterfaceError():
            _log.error("A request for a blob finds no database", exc_info=error)
            return _busy("The forge cannot reach its database. Nothing was changed; try again in a moment.")
    _log.error("A request for a blob failed", exc_info=error)
    return Refused(500, "InternalError", "The server failed. The operator finds the cause in its log.")

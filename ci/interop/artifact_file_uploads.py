"""How do the files of an artifact come from clients of protocol v3? Each by PUT, whole or a chunk after the other."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from django.conf import settings

from ci.interop import rest_uploads
from ci.interop.artifacts_v3 import BASE, check_run
from ci.interop.bodies import BadBody, content_range, headers_of, spool
from ci.interop.rest_views import Answer
from ci.interop.runtime_calls import caller
from ci.interop.threads import in_database, to_storage
from ci.lifecycle.artifact_folders import put_file
from ci.models import Job
from ci.storage import blobs
from forge.git.bodies import Receive
from forge.git.responses import Send

_ADDRESS = re.compile(rf"/{BASE}([1-9][0-9]{{0,17}})/artifacts/([1-9][0-9]{{0,17}})/files")
# How the client says that a file has no bytes.
_NOTHING = "bytes 0--1/0"
# Packed files are handed out as they came; clients unpack these and no others.
_ENCODINGS = ("", "gzip")


class _Chunk(NamedTuple):
    start: int
    size: int
    total: int


def is_upload(scope: dict[str, Any]) -> bool:
    """Whether it is (a part of) a file; all other calls of artifacts are Django's."""
    return scope["method"] == "PUT" and _ADDRESS.fullmatch(scope["path"]) is not None


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    await rest_uploads.serve(_store, scope, receive, send)


async def _store(scope: dict[str, Any], receive: Receive) -> Answer:
    found = _ADDRESS.fullmatch(scope["path"])
    assert found is not None
    headers = headers_of(scope)
    job = await in_database(_caller, headers.get("authorization"), int(found[1]))
    chunk = _chunk(headers)
    encoding = headers.get("content-encoding", "").lower()
    if encoding not in _ENCODINGS:
        raise BadBody(400, "The Content-Encoding may be gzip.")
    md5 = hashlib.md5(usedforsecurity=False)
    async with spool(receive, limit=chunk.size, headers=headers, digest=md5) as (file, size):
        if size != chunk.size:
            raise BadBody(400, f"The body has {size} bytes, and its Content-Range {chunk.size}.")
        expected = headers.get("x-actions-results-md5")
        if expected is not None and base64.b64encode(md5.digest()).decode() != expected:
            raise BadBody(400, "The body is not the one that x-actions-results-md5 describes; send it again.")
        await to_storage(
            put_file,
            job=job,
            artifact_id=int(found[2]),
            item_path=_item_path(scope),
            source=file,
            start=chunk.start,
            size=size,
            total=chunk.total,
            content_encoding=encoding,
        )
    return 201, {"message": "success"}


def _caller(authorization: str | None, run_id: int) -> Job:
    job = caller(authorization)
    check_run(job, run_id)
    return job


def _chunk(headers: dict[str, str]) -> _Chunk:
    """Raises BadBody, BlobTooLarge."""
    given = headers.get("content-range", "").strip()
    if given == _NOTHING:
        return _Chunk(0, 0, 0)
    said = content_range(given)
    if said.total is None:
        raise BadBody(400, "The Content-Range must say how many bytes the file has.")
    if said.total > settings.BLOB_BYTES:
        raise blobs.BlobTooLarge("file", settings.BLOB_BYTES)
    if said.end - said.start > settings.BLOB_PART_BYTES:
        raise blobs.BlobTooLarge("chunk", settings.BLOB_PART_BYTES)
    return _Chunk(said.start, said.end - said.start, said.total)


def _item_path(scope: dict[str, Any]) -> str:
    try:
        query = parse_qs(scope["query_string"].decode("ascii"), max_num_fields=20, errors="strict")
    except ValueError:
        raise BadBody(400, "The query is not one.") from None
    return query.get("itemPath", [""])[0]

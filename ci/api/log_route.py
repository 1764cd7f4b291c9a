"""How do log lines come in at the least cost? By a raw ASGI application: most calls of a runner are these.

Behind it is the same code as behind LogView, which documents the address, and which answers bodies that are long or of
a length unknown: those are then read by a thread as they come.
"""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import close_old_connections, connection

from ci.api import authentication
from ci.api.asgi_call import Call, ClientGone, Receive, Send
from ci.api.bodies import BodyError
from ci.api.runner import calls

# Bodies of bounded length are read before anybody looks who sends them, and up to this one even parsed.
_UNPROVEN = 64 * 1024
_LONGEST = 1024 * 1024
_BODY_SECONDS = 60.0
_PATH = re.compile(r"/api/runner/v1/jobs/([1-9][0-9]{0,18})/log")
_LARGEST_ID = 2**63 - 1
# They wait for nothing but the disk, and now and then for a job's lock.
_threads = ThreadPoolExecutor(4, thread_name_prefix="logs")


def is_append(scope: dict[str, Any]) -> bool:
    """Whether `application` answers this request."""
    if scope["method"] != "POST" or not scope["path"].endswith("/log") or _job_id(scope) is None:
        return False
    length = dict(scope["headers"]).get(b"content-length")
    return length is not None and int(length) <= _LONGEST


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application for POST /api/runner/v1/jobs/{id}/log, where `is_append` says so."""
    call = Call(scope, receive, send)
    job_id = _job_id(scope)
    assert job_id is not None  # or `is_append` had said no
    kind = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
    try:
        raw = await _read(receive)
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(_threads, _append, job_id, call.authorization, kind, raw)
        await call.answer(200, answer)
    except ClientGone:
        pass
    except Exception as error:
        await call.fail(error)


def _job_id(scope: dict[str, Any]) -> int | None:
    found = _PATH.fullmatch(scope["path"])
    number = int(found[1]) if found else _LARGEST_ID + 1
    return number if number <= _LARGEST_ID else None


async def _read(receive: Receive) -> bytes:
    pieces = []
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                pieces.append(message.get("body", b""))
                if not message.get("more_body", False):
                    return b"".join(pieces)
    except TimeoutError:
        raise BodyError("The body did not arrive in time.", status=408, code="timeout") from None


def _append(job_id: int, authorization: str, kind: str, raw: bytes) -> dict[str, Any]:
    try:
        token = authentication.job_token(authorization)
        # The transition looks at the token anyhow, under its lock. Here it is looked at where that comes too late:
        # before much is parsed, and before anybody is told what is wrong with his body.
        if len(raw) > _UNPROVEN:
            authentication.job(authorization, job_id=job_id)
        try:
            given = calls.log_request(raw, kind)
        except Exception:
            authentication.job(authorization, job_id=job_id)
            raise
        return calls.append_log(job_id=job_id, token=token, given=given)
    finally:
        _tidy()


def _tidy() -> None:
    """Close the connection where Django would, after an error or at its age. What Django does beside, looking before
    each call whether it is still good, is left out: the transition tries again with a new one."""
    if connection.errors_occurred or (connection.close_at is not None and time.monotonic() >= connection.close_at):
        close_old_connections()

"""Which part of Forge CI answers a request? The composition root of the server: git and waiting calls beside Django."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from typing import Any, cast

from a2wsgi import WSGIMiddleware
from django.conf import settings

from forge.wsgi import application as django  # isort: skip - what follows reads settings and models

from ci.api import log_route, waiting
from ci.interop import artifact_file_uploads, blobs, cache_uploads
from ci.interop.runner_service import methods as connect
from ci.waiting import process
from forge.git import http as git
from forge.git.database import in_database
from forge.git.receive import settle_recorded_pushes
from forge.wsgi_bodies import Receive, Send, prepared

_log = logging.getLogger(__name__)
# Beside its own threads Django's ASGI handler would start one for every open request.
_THREADS = settings.WEB_THREADS or 16
_REPAIR_SECONDS = 30.0
_WAITING = re.compile(r"/api/runner/v1/jobs/(?:fetch|[0-9]+/heartbeat)")
# Its own types are narrower than what the specification of ASGI says.
_pages: Any = WSGIMiddleware(cast(Any, django), workers=_THREADS)


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif scope["type"] != "http":
        await _pages(scope, receive, send)  # which closes it
    elif git.is_git(scope["path"]):
        await git.application(scope, receive, send)
    elif blobs.is_blob(scope["path"]):
        await blobs.application(scope, receive, send)
    elif _WAITING.fullmatch(scope["path"]):
        await waiting.application(scope, receive, send)
    elif log_route.is_append(scope):
        await log_route.application(scope, receive, send)
    elif connect.is_call(scope["path"]):
        await connect.application(scope, receive, send)
    elif cache_uploads.is_upload(scope):
        await cache_uploads.application(scope, receive, send)
    elif artifact_file_uploads.is_upload(scope):
        await artifact_file_uploads.application(scope, receive, send)
    else:
        found = await prepared(scope, receive, send)
        if found is not None:
            await _pages(*found, send)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await _start()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            with contextlib.suppress(Exception):
                await process.shutdown()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _start() -> None:
    await process.startup()
    try:
        await asyncio.wait_for(in_database(settle_recorded_pushes), _REPAIR_SECONDS)
    except TimeoutError:
        _log.warning("Settling earlier pushes takes long; it goes on while the server starts")

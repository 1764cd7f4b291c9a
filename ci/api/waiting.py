"""How do jobs/fetch and heartbeat wait without cost? As a raw ASGI application that holds only their sockets."""

from __future__ import annotations

import functools
import random
import re
from typing import Any

from django.conf import settings
from rest_framework.serializers import Serializer

from ci.api import authentication
from ci.api.asgi_call import Call, ClientGone, Receive, Send
from ci.api.runner import calls
from ci.api.runner.serializers import LONGEST_WAIT, FetchRequest, HeartbeatRequest
from ci.lifecycle import payload
from ci.lifecycle.polls import Poller
from ci.lifecycle.runner_versions import refuse_outdated
from ci.models import Runner
from ci.waiting.polling import Changed, next_job
from ci.waiting.process import Process, current
from forge.tokens import hash_token

_PATH = re.compile(r"/api/runner/v1/jobs/(?:fetch|([1-9][0-9]{0,18})/heartbeat)")
_LARGEST_ID = 2**63 - 1
_POLL_ID = re.compile(FetchRequest.POLL_ID)


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application for POST /api/runner/v1/jobs/fetch and …/jobs/{id}/heartbeat."""
    call = Call(scope, receive, send)
    found = _PATH.fullmatch(scope["path"])
    job_id = int(found[1]) if found and found[1] else None
    try:
        if found is None or (job_id or 0) > _LARGEST_ID:
            await call.refuse(404, "not_found", "There is nothing at this address.")
        elif scope["method"] != "POST":
            await call.refuse(405, "method_not_allowed", "Use POST.", allow="POST")
        elif job_id is None:
            await _fetch(call, current())
        else:
            await _heartbeat(call, current(), job_id)
    except ClientGone:
        pass
    except Exception as error:
        await call.fail(error)
    finally:
        call.close()


def _checked(shape: type[Serializer[Any]], body: dict[str, Any]) -> dict[str, Any]:
    serializer = shape(data=body)
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


def _let_in(authorization: str) -> Runner:
    runner = authentication.runner(authorization)
    refuse_outdated(runner)
    return runner


async def _fetch(call: Call, process: Process) -> None:
    # Before all else who may send a body at all; together with others, of whom thousands may come at once.
    token_hash = _token_hash(call.authorization)
    poller = process.known.get(token_hash)
    is_new = poller is None
    if process.known.is_at_work(token_hash):
        poller = None
    elif poller is None:
        poller = await process.identities.ask(token_hash)
    together = poller is not None
    if poller is None:
        poller = Poller.of(await process.poll(_let_in, call.authorization))
    poll_id, wait = _fetch_request(await call.body())
    # Spread, or all runners that a restart made poll together would do so for ever; once they are spread, they are.
    seconds = wait * random.uniform(0.5 if is_new else 0.9, 1.0)
    wait_for = functools.partial(next_job, process, call, poll_id=poll_id, seconds=seconds, build=payload.build)
    try:
        found = await wait_for(runner=poller, known=together and wait > 0)
    except Changed:
        process.known.forget(poller)
        poller = Poller.of(await process.poll(_let_in, call.authorization))
        found = await wait_for(runner=poller)
    process.known.learn(poller, got_a_job=found is not None)
    await call.answer(204 if found is None else 200, found)


def _token_hash(authorization: str) -> str:
    """Of nobody's where there is no token."""
    return hash_token(authentication.token_in(authorization) or "")


def _fetch_request(body: dict[str, Any]) -> tuple[str, float]:
    """What FetchRequest makes of it, which costs more than all else that is done for a poll in vain."""
    poll_id: Any = body.get("poll_id")
    wait: Any = body.get("wait")
    plain = type(poll_id) is str and (type(wait) is int or type(wait) is float)
    if plain and _POLL_ID.fullmatch(poll_id) and 0 <= wait <= LONGEST_WAIT:
        return poll_id, float(wait)
    given = _checked(FetchRequest, body)
    return given["poll_id"], given["wait"]


async def _heartbeat(call: Call, process: Process, job_id: int) -> None:
    token = await process.beat(authentication.job, call.authorization, job_id=job_id)
    wait = _checked(HeartbeatRequest, await call.body())["wait"]
    # A call that waits is heard of at both ends, so it must be well shorter than the silence that loses a job.
    wait = min(wait, settings.HEARTBEAT_SECONDS / 2)
    with process.hub.watching(job_id) as changed:
        answer = await process.beat(calls.heartbeat, job_id=job_id, token=token)
        if answer["cancel"] is None and wait > 0 and not process.hub.closing:
            await call.wait(changed, wait)
            if call.is_gone:
                return
            answer = await process.beat(calls.heartbeat, job_id=job_id, token=token)
    await call.answer(200, answer)

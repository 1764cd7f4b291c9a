"""Which procedures are there, who may call them, and how much may they be sent?"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from ci.interop.connect import Method, serve
from ci.interop.connect_bodies import Receive, Send
from ci.interop.protocol import ping_pb2, runner_pb2
from ci.interop.runner_service.callers import admit
from ci.interop.runner_service.declare import declare
from ci.interop.runner_service.fetch_task import fetch_single_task, fetch_task
from ci.interop.runner_service.ping import ping
from ci.interop.runner_service.register import register
from ci.interop.runner_service.update_log import update_log
from ci.interop.runner_service.update_task import update_task

_PREFIX = "/api/actions/"
_SERVICES = ("ping.v1.", "runner.v1.")
_SMALL = 64 * 1024
# What a runner has gathered while the server was away must come through at last: as much as a whole log may hold. A
# report with large outputs must come through too, or its job would never end; they are sorted out then.
_LARGE = 64 * 1024 * 1024
# Of one message. Whatever the limit of a log is: one that goes over it ends its job for that, and is not refused.
_MOST_LINES = 2_000_000
# The field of a report that holds its steps.
_STATE = runner_pb2.UpdateTaskRequest.STATE_FIELD_NUMBER

METHODS: dict[str, Method[Any]] = {
    "ping.v1.PingService/Ping": Method(ping_pb2.PingRequest, ping, _SMALL),
    "runner.v1.RunnerService/Register": Method(runner_pb2.RegisterRequest, register, _SMALL),
    "runner.v1.RunnerService/Declare": Method(runner_pb2.DeclareRequest, declare, _SMALL, admit),
    "runner.v1.RunnerService/FetchTask": Method(runner_pb2.FetchTaskRequest, fetch_task, _SMALL, admit),
    "runner.v1.RunnerService/FetchSingleTask": Method(
        runner_pb2.FetchSingleTaskRequest, fetch_single_task, _SMALL, admit
    ),
    "runner.v1.RunnerService/UpdateTask": Method(
        runner_pb2.UpdateTaskRequest, update_task, _LARGE, admit, within=_STATE
    ),
    "runner.v1.RunnerService/UpdateLog": Method(
        runner_pb2.UpdateLogRequest,
        update_log,
        _LARGE,
        admit,
        most_fields=max(_MOST_LINES, settings.LOG_LIMIT_LINES) + 3,
    ),
}


def is_call(path: str) -> bool:
    """Whether this address is one of a Connect service."""
    return path.startswith(tuple(_PREFIX + service for service in _SERVICES))


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application below /api/actions/{ping,runner}.v1."""
    await serve(METHODS, scope["path"].removeprefix(_PREFIX), scope, receive, send)

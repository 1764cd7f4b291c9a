"""How does a runner come to be known? By the registration token of the scope that it is to serve."""

from __future__ import annotations

import uuid

from ci.interop.connect import Call
from ci.interop.connect_errors import ConnectError
from ci.interop.protocol import runner_pb2 as pb
from ci.interop.runner_service.callers import described, names_of
from ci.lifecycle.errors import Unauthenticated
from ci.lifecycle.registration import register_runner
from ci.waiting.process import current
from ci.workflow.storable import cleaned


async def register(call: Call, request: pb.RegisterRequest) -> pb.RegisterResponse:
    return await current().poll(_register, request)


def _register(request: pb.RegisterRequest) -> pb.RegisterResponse:
    """Raises ConnectError, InvalidInput."""
    # Older runners have the fields that are deprecated.
    labels = request.labels or [*request.agent_labels, *request.custom_labels]
    try:
        runner, token = register_runner(
            token=request.token,
            name=request.name,
            labels=names_of(labels),
            ephemeral=request.ephemeral,
            agent_version=cleaned(request.version),
            identity=uuid.uuid4(),
        )
    except Unauthenticated as error:
        # Not `unauthenticated`: that is said of a runner, and this is none yet.
        raise ConnectError("invalid_argument", error.detail) from None
    return pb.RegisterResponse(runner=described(runner, token=token))

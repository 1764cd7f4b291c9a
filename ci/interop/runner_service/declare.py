"""What does a runner say of itself at each of its starts?"""

from __future__ import annotations

from ci.interop.connect import Call
from ci.interop.protocol import runner_pb2 as pb
from ci.interop.runner_service.callers import caller, described, names_of
from ci.interop.step_summaries import CAPABILITIES_HEADER, CAPABILITY
from ci.lifecycle.registration import update_runner
from ci.waiting.process import current
from ci.workflow.storable import cleaned


async def declare(call: Call, request: pb.DeclareRequest) -> pb.DeclareResponse:
    runner = await current().poll(
        update_runner,
        runner_id=caller(call).pk,
        labels=names_of(request.labels),
        agent_version=cleaned(request.version),
    )
    call.answer_headers[CAPABILITIES_HEADER] = CAPABILITY
    return pb.DeclareResponse(runner=described(runner))

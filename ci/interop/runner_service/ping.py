"""Is there a server? What a runner asks before it registers."""

from __future__ import annotations

from ci.interop.connect import Call
from ci.interop.protocol import ping_pb2 as pb

_MOST_DATA = 1000


async def ping(call: Call, request: pb.PingRequest) -> pb.PingResponse:
    return pb.PingResponse(data=f"Hello, {request.data[:_MOST_DATA]}!")

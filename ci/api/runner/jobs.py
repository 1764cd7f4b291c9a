"""How does a runner get a job, keep it, report on it and end it?"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from ci.api.authentication import JobAuthentication, RunnerAuthentication, proof
from ci.api.documentation import BODY, errors
from ci.api.parsers import LargeObjectParser, LogParser
from ci.api.runner import calls
from ci.api.runner.serializers import (
    CompleteRequest,
    CompleteResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    LogRequest,
    LogResponse,
    StepsRequest,
)
from ci.api.uncached import UncachedView
from ci.lifecycle import transitions

_ANSWERED_AT_ONCE = "Where the server runs without its waiting routes, the answer comes at once."


def _checked(shape: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    serializer = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


class FetchView(UncachedView):
    """Documents and backs `ci.api.waiting`, which answers this address under ASGI."""

    authentication_classes = [RunnerAuthentication]
    permission_classes = []

    @extend_schema(
        operation_id="fetch_job",
        summary="Fetch a job",
        description="Waits up to `wait` seconds for a job that the runner may take. The first heartbeat acknowledges "
        "it; without one it goes back to the queue. " + _ANSWERED_AT_ONCE,
        tags=["runner API"],
        request=FetchRequest,
        responses={
            200: FetchResponse,
            204: OpenApiResponse(description="No job now: fetch again."),
            **errors(*BODY, 401, 409),
        },
    )
    def post(self, request: Request) -> Response:
        given = _checked(FetchRequest, request)
        payload = calls.fetch(runner=proof(request), poll_id=given["poll_id"])
        return Response(status=204) if payload is None else Response(payload)


class HeartbeatView(UncachedView):
    """Documents and backs `ci.api.waiting`, which answers this address under ASGI."""

    authentication_classes = [JobAuthentication]
    permission_classes = []

    @extend_schema(
        operation_id="heartbeat",
        summary="Keep a job, and hear of its cancel",
        description="Waits up to `wait` seconds for a cancel. The first one acknowledges the job. " + _ANSWERED_AT_ONCE,
        tags=["runner API"],
        request=HeartbeatRequest,
        responses={200: HeartbeatResponse, **errors(*BODY, 401, 404, 409)},
    )
    def post(self, request: Request, job_id: int) -> Response:
        _checked(HeartbeatRequest, request)
        return Response(calls.heartbeat(job_id=job_id, token=proof(request)))


class StepsView(UncachedView):
    authentication_classes = [JobAuthentication]
    permission_classes = []
    parser_classes = [LargeObjectParser]

    @extend_schema(
        operation_id="update_steps",
        summary="Report steps",
        description="Only the steps given change; one that ended does not change again, so a repeat is harmless.",
        tags=["runner API"],
        request=StepsRequest,
        responses={200: OpenApiResponse({"type": "object"}, description="Taken."), **errors(*BODY, 401, 404, 409)},
    )
    def patch(self, request: Request, job_id: int) -> Response:
        given = _checked(StepsRequest, request)
        transitions.update_steps(job_id=job_id, token=proof(request), steps=given["steps"])
        return Response({})


class LogView(UncachedView):
    """Documents and backs `ci.api.log_route`, which answers most calls of this address under ASGI."""

    authentication_classes = [JobAuthentication]
    permission_classes = []
    parser_classes = [LogParser]

    @extend_schema(
        operation_id="append_log",
        summary="Append to the log",
        description="Lines from `offset` on. A repeat is harmless; a hole is refused with the offset to continue at.",
        tags=["runner API"],
        request=LogRequest,
        responses={200: LogResponse, **errors(*BODY, 401, 404, 409)},
    )
    def post(self, request: Request, job_id: int) -> Response:
        given = _checked(LogRequest, request)
        return Response(calls.append_log(job_id=job_id, token=proof(request), given=given))


class CompleteView(UncachedView):
    authentication_classes = [JobAuthentication]
    permission_classes = []
    parser_classes = [LargeObjectParser]

    @extend_schema(
        operation_id="complete_job",
        summary="End a job",
        description="A repeat gets the same answer. What counts is the conclusion in the answer: a job that was "
        "cancelled meanwhile is cancelled.",
        tags=["runner API"],
        request=CompleteRequest,
        responses={200: CompleteResponse, **errors(*BODY, 401, 404, 409)},
    )
    def post(self, request: Request, job_id: int) -> Response:
        given = _checked(CompleteRequest, request)
        end = transitions.complete(
            job_id=job_id,
            token=proof(request),
            conclusion=given["conclusion"],
            outputs=given["outputs"],
            steps=given["steps"],
            environment_url=given["environment_url"],
        )
        return Response({"conclusion": end.conclusion, "reason": end.reason})

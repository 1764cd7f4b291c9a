"""How does a runner register, describe itself and leave?"""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.authentication import RegistrationAuthentication, RunnerAuthentication, proof
from ci.api.documentation import BODY, NOTHING, errors
from ci.api.runner.serializers import RegisteredRunner, RegisterRequest, RunnerSelf, RunnerUpdate
from ci.api.uncached import UncachedView
from ci.lifecycle import registration
from ci.lifecycle.runner_versions import refuse_outdated


class RunnersView(UncachedView):
    authentication_classes = [RegistrationAuthentication]
    permission_classes = []

    @extend_schema(
        operation_id="register_runner",
        summary="Register a runner",
        description="With a registration token (`frg_…`). The answer holds the runner's own token, this once.",
        tags=["runner API"],
        request=RegisterRequest,
        responses={201: RegisteredRunner, **errors(*BODY, 401)},
    )
    def post(self, request: Request) -> Response:
        shape = RegisterRequest(data=request.data)
        shape.is_valid(raise_exception=True)
        given = dict(shape.validated_data)
        runner, token = registration.register_runner(token=proof(request), agent_version=given.pop("version"), **given)
        answer = {
            "id": runner.pk,
            "name": runner.name,
            "labels": runner.labels,
            "ephemeral": runner.ephemeral,
            "token": token,
        }
        return Response(answer, status=201)


class SelfView(UncachedView):
    authentication_classes = [RunnerAuthentication]
    permission_classes = []

    @extend_schema(
        operation_id="show_runner_self",
        summary="Show the calling runner",
        tags=["runner API"],
        responses={200: RunnerSelf, **errors(401)},
    )
    def get(self, request: Request) -> Response:
        return Response(RunnerSelf(proof(request)).data)

    @extend_schema(
        operation_id="update_runner_self",
        summary="Change the calling runner",
        description="What is left out stays as it is. A set's runner whose version is not taken here any more is told "
        "so by a conflict with the code `runner_outdated`, and its set is parked.",
        tags=["runner API"],
        request=RunnerUpdate,
        responses={200: RunnerSelf, **errors(*BODY, 401, 409)},
    )
    def patch(self, request: Request) -> Response:
        shape = RunnerUpdate(data=request.data)
        shape.is_valid(raise_exception=True)
        given = dict(shape.validated_data)
        if "version" in given:
            given["agent_version"] = given.pop("version")
        runner = registration.update_runner(runner_id=proof(request).pk, **given)
        refuse_outdated(runner)
        return Response(RunnerSelf(runner).data)

    @extend_schema(
        operation_id="remove_runner_self",
        summary="Remove the calling runner",
        description="Its token stops working at once; a job that it has goes back to the queue or ends.",
        tags=["runner API"],
        responses={204: NOTHING, **errors(401, 409)},
    )
    def delete(self, request: Request) -> Response:
        registration.remove_runner(runner_id=proof(request).pk)
        return Response(status=204)

"""Which runners serve a repository, a person or the instance, and which tokens let more of them in?"""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, NOTHING, errors, pages
from ci.api.owners.base import ScopedView
from ci.api.owners.serializers import (
    NewRegistrationToken,
    RegistrationTokenShape,
    RegistrationTokenShown,
    RunnerChange,
    RunnerShape,
)
from ci.lifecycle import registration
from ci.models import RegistrationToken, Runner


class RunnersView(ScopedView):
    @extend_schema(summary="List runners", tags=["runners"], **pages(RunnerShape, 403, 404))
    def get(self, request: Request, **names: Any) -> Response:
        return self.page(Runner.objects.filter(**self.rows()).order_by("name", "id"), RunnerShape)


class RunnerView(ScopedView):
    def runner(self) -> Runner:
        """Raises Http404, PermissionDenied."""
        found = Runner.objects.filter(pk=self.kwargs["runner_id"], **self.rows()).first()
        if found is None:
            raise Http404("There is no such runner here; it may have been removed.")
        return found

    @extend_schema(
        summary="Show a runner", tags=["runners"], responses={200: RunnerShape, **errors(401, 403, 404, 429)}
    )
    def get(self, request: Request, runner_id: int, **names: Any) -> Response:
        return Response(RunnerShape(self.runner()).data)

    @extend_schema(
        summary="Pause or resume a runner",
        description="A paused runner finishes its job and takes no other.",
        tags=["runners"],
        request=RunnerChange,
        responses={200: RunnerShape, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def patch(self, request: Request, runner_id: int, **names: Any) -> Response:
        runner = self.runner()
        registration.pause_runner(runner_id=runner.pk, actor=request.user, **self.given(RunnerChange))
        return Response(RunnerShape(self.runner()).data)

    @extend_schema(
        summary="Remove a runner",
        description="A job that it has goes back to the queue, or ends if a step had begun.",
        tags=["runners"],
        responses={204: NOTHING, **errors(401, 403, 404, 409, 429)},
    )
    def delete(self, request: Request, runner_id: int, **names: Any) -> Response:
        registration.remove_runner(runner_id=self.runner().pk, actor=request.user)
        return Response(status=204)


class RegistrationTokensView(ScopedView):
    @extend_schema(summary="List registration tokens", tags=["runners"], **pages(RegistrationTokenShape, 403, 404))
    def get(self, request: Request, **names: Any) -> Response:
        rows = RegistrationToken.objects.filter(**self.rows()).select_related("created_by")
        return self.page(rows.order_by("-id"), RegistrationTokenShape)

    @extend_schema(
        summary="Create a registration token",
        description="Runners that register with it serve this scope.",
        tags=["runners"],
        request=NewRegistrationToken,
        responses={201: RegistrationTokenShown, **errors(*BODY, 401, 403, 404, 429)},
    )
    def post(self, request: Request, **names: Any) -> Response:
        scope = self.scope()
        given = self.given(NewRegistrationToken)
        row, text = registration.create_registration_token(scope=scope, created_by=request.user, **given)
        row.token = text  # type: ignore[attr-defined]
        return Response(RegistrationTokenShown(row).data, status=201)


class RegistrationTokenView(ScopedView):
    @extend_schema(
        summary="Revoke a registration token",
        description="Runners that registered with it stay.",
        tags=["runners"],
        responses={204: NOTHING, **errors(401, 403, 404, 409, 429)},
    )
    def delete(self, request: Request, token_id: int, **names: Any) -> Response:
        if not RegistrationToken.objects.filter(pk=token_id, **self.rows()).exists():
            raise Http404("There is no such token here.")
        registration.revoke_registration_token(token_id=token_id, actor=request.user)
        return Response(status=204)

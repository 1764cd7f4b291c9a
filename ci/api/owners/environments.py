"""Which environments does a repository have, and how does one come and go?"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, NOTHING, errors, pages
from ci.api.owners.base import ScopedView
from ci.api.owners.serializers import EnvironmentShape, NewEnvironment
from ci.lifecycle.environments import create_environment, delete_environment
from ci.models import Environment


class EnvironmentsView(ScopedView):
    @extend_schema(summary="List environments", tags=["environments"], **pages(EnvironmentShape, 403, 404))
    def get(self, request: Request, **names: Any) -> Response:
        rows = Environment.objects.filter(repository=self.scope().repository)
        return self.page(rows.order_by("name"), EnvironmentShape)

    @extend_schema(
        summary="Create an environment",
        description="One that a job names and that is missing is created with the job.",
        tags=["environments"],
        request=NewEnvironment,
        responses={201: EnvironmentShape, **errors(*BODY, 401, 403, 404, 429)},
    )
    def post(self, request: Request, **names: Any) -> Response:
        repository = self.scope().repository
        assert repository is not None
        made = create_environment(repository=repository, name=self.given(NewEnvironment)["name"], actor=request.user)
        return Response(EnvironmentShape(made).data, status=201)


class EnvironmentView(ScopedView):
    @extend_schema(
        summary="Show an environment",
        description="Names compare without case.",
        tags=["environments"],
        responses={200: EnvironmentShape, **errors(401, 403, 404, 429)},
    )
    def get(self, request: Request, **names: Any) -> Response:
        return Response(EnvironmentShape(self.environment()).data)

    @extend_schema(
        summary="Delete an environment",
        description="With its secrets and variables; jobs that used it stay.",
        tags=["environments"],
        responses={204: NOTHING, **errors(401, 403, 404, 429)},
    )
    def delete(self, request: Request, **names: Any) -> Response:
        found = self.environment()
        delete_environment(repository=found.repository, name=found.name, actor=request.user)
        return Response(status=204)

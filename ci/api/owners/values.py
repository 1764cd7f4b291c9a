"""Which secrets and variables are there, and how are they set? A secret's value is never shown again."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, NOTHING, errors, pages
from ci.api.owners.base import ScopedView
from ci.api.owners.serializers import SecretShape, SecretValue, VariableShape, VariableValue
from ci.lifecycle import settings_values
from ci.models import Secret, Variable


class SecretsView(ScopedView):
    @extend_schema(summary="List the names of secrets", tags=["secrets"], **pages(SecretShape, 403, 404))
    def get(self, request: Request, **names: Any) -> Response:
        return self.page(Secret.objects.filter(**self.value_rows()).order_by("name"), SecretShape)


class SecretView(ScopedView):
    @extend_schema(
        summary="Set a secret",
        description="Names compare without case and are kept in upper case.",
        tags=["secrets"],
        request=SecretValue,
        responses={200: SecretShape, **errors(*BODY, 401, 403, 404, 429)},
    )
    def put(self, request: Request, key: str, **names: Any) -> Response:
        scope = self.scope()
        value = self.given(SecretValue)["value"]
        row = settings_values.set_secret(scope=scope, name=key, value=value, actor=request.user)
        return Response(SecretShape(row).data)

    @extend_schema(summary="Delete a secret", tags=["secrets"], responses={204: NOTHING, **errors(401, 403, 404, 429)})
    def delete(self, request: Request, key: str, **names: Any) -> Response:
        settings_values.delete_secret(scope=self.scope(), name=key, actor=request.user)
        return Response(status=204)


class VariablesView(ScopedView):
    @extend_schema(summary="List variables", tags=["variables"], **pages(VariableShape, 403, 404))
    def get(self, request: Request, **names: Any) -> Response:
        return self.page(Variable.objects.filter(**self.value_rows()).order_by("name"), VariableShape)


class VariableView(ScopedView):
    @extend_schema(
        summary="Set a variable",
        description="Names compare without case and are kept in upper case.",
        tags=["variables"],
        request=VariableValue,
        responses={200: VariableShape, **errors(*BODY, 401, 403, 404, 429)},
    )
    def put(self, request: Request, key: str, **names: Any) -> Response:
        scope = self.scope()
        value = self.given(VariableValue)["value"]
        row = settings_values.set_variable(scope=scope, name=key, value=value, actor=request.user)
        return Response(VariableShape(row).data)

    @extend_schema(
        summary="Delete a variable", tags=["variables"], responses={204: NOTHING, **errors(401, 403, 404, 429)}
    )
    def delete(self, request: Request, key: str, **names: Any) -> Response:
        settings_values.delete_variable(scope=self.scope(), name=key, actor=request.user)
        return Response(status=204)

"""How does a job get an id token, and how does anybody verify one?"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ci.api.authentication import IdTokenRequestAuthentication, proof
from ci.api.documentation import errors
from ci.api.uncached import UncachedView
from ci.lifecycle import id_tokens, signing_keys

# Short, as a key that was just replaced must be found.
_PUBLIC = {"Cache-Control": "public, max-age=60"}
# How OpenAPI says that a call needs no sign-in.
_NOBODY: list[Any] = [{}]


class IdToken(serializers.Serializer[Any]):
    value = serializers.CharField(help_text="A JSON Web Token (RFC 7519), signed with RS256.")


class Configuration(serializers.Serializer[Any]):
    issuer = serializers.URLField()
    jwks_uri = serializers.URLField()
    subject_types_supported = serializers.ListField(child=serializers.CharField())
    response_types_supported = serializers.ListField(child=serializers.CharField())
    claims_supported = serializers.ListField(child=serializers.CharField())
    id_token_signing_alg_values_supported = serializers.ListField(child=serializers.CharField())
    scopes_supported = serializers.ListField(child=serializers.CharField())


class PublicKey(serializers.Serializer[Any]):
    kty = serializers.CharField()
    alg = serializers.CharField()
    use = serializers.CharField()
    kid = serializers.CharField()
    n = serializers.CharField()
    e = serializers.CharField()


class KeySet(serializers.Serializer[Any]):
    keys = PublicKey(many=True)


class IdTokenView(UncachedView):
    authentication_classes = [IdTokenRequestAuthentication]
    permission_classes = []

    @extend_schema(
        operation_id="request_id_token",
        summary="Get an id token",
        description="For a running job with `id-token: write`: an OpenID Connect token that says which job it is, to "
        "exchange for credentials elsewhere. Valid for ten minutes. Its address is ACTIONS_ID_TOKEN_REQUEST_URL.",
        tags=["id tokens"],
        parameters=[
            OpenApiParameter(
                "audience",
                {"type": "string", "maxLength": id_tokens.MAX_AUDIENCE},
                description="Whom the token is for; the address of the repository's owner if left out.",
            )
        ],
        responses={200: IdToken, **errors(400, 401, 403, 404, 409)},
    )
    def get(self, request: Request, run_id: int) -> Response:
        audiences = request.query_params.getlist("audience")
        return Response({"value": id_tokens.issue(run_id=run_id, token=proof(request), audiences=audiences)})


class ConfigurationView(APIView):
    authentication_classes = []
    permission_classes = []

    @extend_schema(
        operation_id="show_openid_configuration",
        summary="Discover how id tokens are verified",
        tags=["id tokens"],
        auth=_NOBODY,
        responses={200: Configuration, **errors()},
    )
    def get(self, request: Request) -> Response:
        return Response(id_tokens.configuration(), headers=_PUBLIC)


class KeysView(APIView):
    authentication_classes = []
    permission_classes = []

    @extend_schema(
        operation_id="list_signing_keys",
        summary="List the public keys that id tokens are signed with",
        description="A JSON Web Key Set (RFC 7517). A replaced key stays until what it signed has expired.",
        tags=["id tokens"],
        auth=_NOBODY,
        responses={200: KeySet, **errors()},
    )
    def get(self, request: Request) -> Response:
        return Response(signing_keys.key_set(), headers=_PUBLIC)

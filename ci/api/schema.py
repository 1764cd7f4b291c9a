"""What does OpenAPI say beyond the DRF views, and who shows it?"""

from __future__ import annotations

from typing import Any

from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

_OWNER = {"name": "owner", "in": "path", "required": True, "schema": {"type": "string"}}
_NAME = {"name": "repository", "in": "path", "required": True, "schema": {"type": "string"}}
_SERVICE = {
    "name": "service",
    "in": "query",
    "required": True,
    "schema": {"type": "string", "enum": ["git-upload-pack", "git-receive-pack"]},
}
_BASIC: list[dict[str, list[str]]] = [{"gitPassword": []}, {}]
_BINARY = {"schema": {"type": "string", "format": "binary"}}


class SchemaView(SpectacularAPIView):
    """The OpenAPI document."""

    permission_classes = []


# Swagger UI writes style elements while it draws; scripts stay the site's own.
@method_decorator(csp_update({"style-src": ["'unsafe-inline'"]}), name="dispatch")
class DocsView(SpectacularSwaggerSplitView):
    """The OpenAPI document to read and try out. Its start script comes by a request of its own, so none is inline."""

    permission_classes = []
    url_name = "schema"


class _TokenScheme(OpenApiAuthenticationExtension):
    description = ""

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": self.description}


class RegistrationScheme(_TokenScheme):
    target_class = "ci.api.authentication.RegistrationAuthentication"
    name = "registrationToken"
    description = "A registration token, `frg_…`, from a page that lists runners."


class RunnerScheme(_TokenScheme):
    target_class = "ci.api.authentication.RunnerAuthentication"
    name = "runnerToken"
    description = "The runner's own token, `frr_…`, from its registration."


class JobScheme(_TokenScheme):
    target_class = "ci.api.authentication.JobAuthentication"
    name = "jobToken"
    description = "The token of one assignment, `frj_…`, from jobs/fetch."


class JobActorScheme(_TokenScheme):
    target_class = "ci.api.authentication.JobActorAuthentication"
    name = "actionsToken"
    description = "What a running job sees as GITHUB_TOKEN, `frj_…`, as far as its permission `actions` goes."


class JobMetadataScheme(_TokenScheme):
    target_class = "ci.api.authentication.JobMetadataAuthentication"
    name = "metadataToken"
    description = "What a running job sees as GITHUB_TOKEN, `frj_…`, whatever its permissions are."


class IdTokenRequestScheme(_TokenScheme):
    target_class = "ci.api.authentication.IdTokenRequestAuthentication"
    name = "idTokenRequest"
    description = "What a running job with `id-token: write` sees as ACTIONS_ID_TOKEN_REQUEST_TOKEN, `fri_…`."


class AccessTokenScheme(_TokenScheme):
    target_class = "ci.api.authentication.AccessTokenAuthentication"
    name = "accessToken"
    description = "A personal access token, `frp_…`, from the settings of your account."


def add_raw_routes(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """A post-processing hook of drf-spectacular: git over HTTP is no DRF view, but is part of the API."""
    paths = result.setdefault("paths", {})
    schemes = result.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["gitPassword"] = {
        "type": "http",
        "scheme": "basic",
        "description": "User name and password, or any name with a personal access token or a job token as password.",
    }
    paths["/{owner}/{repository}.git/info/refs"] = {"get": _advertisement()}
    for service, what in (("git-upload-pack", "Fetch"), ("git-receive-pack", "Push")):
        paths[f"/{{owner}}/{{repository}}.git/{service}"] = {"post": _service(service, what)}
    return result


def _errors() -> dict[str, Any]:
    return {
        "401": {"description": "The repository is private or this would write, and nobody is signed in."},
        "403": {"description": "The role in this repository does not allow it."},
        "404": {"description": "There is no such repository, or the caller may not know of it."},
    }


def _advertisement() -> dict[str, Any]:
    return {
        "operationId": "git_advertise_refs",
        "summary": "List refs for git",
        "description": "The first request of git's smart HTTP protocol (gitprotocol-http).",
        "tags": ["git"],
        "security": _BASIC,
        "parameters": [_OWNER, _NAME, _SERVICE],
        "responses": {
            "200": {
                "description": "Refs and capabilities.",
                "content": {
                    f"application/x-{service}-advertisement": _BINARY
                    for service in ("git-upload-pack", "git-receive-pack")
                },
            },
            **_errors(),
        },
    }


def _service(service: str, what: str) -> dict[str, Any]:
    return {
        "operationId": service.replace("-", "_"),
        "summary": f"{what} with git",
        "description": "The second request of git's smart HTTP protocol; the body may be chunked and gzipped.",
        "tags": ["git"],
        "security": _BASIC,
        "parameters": [_OWNER, _NAME],
        "requestBody": {"required": True, "content": {f"application/x-{service}-request": _BINARY}},
        "responses": {
            "200": {"description": "git's answer.", "content": {f"application/x-{service}-result": _BINARY}},
            **_errors(),
        },
    }

"""How do the views say, for OpenAPI, which errors they answer?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, OpenApiTypes, inline_serializer
from rest_framework import serializers

_DETAIL: dict[str, serializers.Field[Any, Any, Any, Any]] = {
    "code": serializers.CharField(),
    "detail": serializers.CharField(),
}
_PLAIN = inline_serializer("Error", _DETAIL)
_FIELDS = inline_serializer(
    "InvalidError", {**_DETAIL, "errors": serializers.DictField(required=False, help_text="What is wrong, by field.")}
)
_CONFLICT = inline_serializer(
    "ConflictError",
    {
        **_DETAIL,
        "conclusion": serializers.CharField(required=False, help_text="Of job_ended: how the job ended."),
        "reason": serializers.CharField(required=False, allow_blank=True, help_text="Of job_ended: why."),
        "next_offset": serializers.IntegerField(required=False, help_text="Of log_offset: the line expected next."),
    },
)
_TOO_LARGE = inline_serializer(
    "TooLargeError",
    {**_DETAIL, "next_offset": serializers.IntegerField(required=False, help_text="Of log_limit: the lines kept.")},
)
_ERRORS = {
    400: (_FIELDS, "`invalid`: the body or a field is not as it must be; `errors` names the fields."),
    401: (
        _PLAIN,
        "`unauthenticated`: no token, or one that is unknown, of another kind, expired, revoked or replaced.",
    ),
    403: (_PLAIN, "`not_allowed`: the caller may see this but not do it."),
    404: (_PLAIN, "`not_found`: there is no such thing, or the caller may not know of it."),
    409: (
        _CONFLICT,
        "`job_ended`, `log_offset`, `runner_outdated`, or `conflict`: the state does not allow it, `detail` says why.",
    ),
    410: (_PLAIN, "`expired`: it was kept until its time was over."),
    413: (_TOO_LARGE, "`too_large`: the body; or `log_limit`: the log is full or closed."),
    415: (_PLAIN, "`unsupported_media_type`: the body must be `application/json`."),
    429: (_PLAIN, "`throttled`: too many calls; `Retry-After` says when to come back."),
    503: (_PLAIN, "`unavailable`: the database did not answer; `Retry-After` says when to try again."),
}
# Whatever the call, its address, headers and body may be wrong.
_ALWAYS = {
    405: (_PLAIN, "`method_not_allowed`."),
    406: (_PLAIN, "`not_acceptable`: answers are `application/json`."),
}


# What a POST to such an address makes one of; any other is a verb itself.
_MADE = ("repositories", "registration_tokens", "dispatches", "environments", "runner_sets")


class OwnersSchema(AutoSchema):
    """Names operations by what they do: list_repositories_runs, show_repositories_runs, update_user_secrets."""

    method_mapping = {"get": "show", "post": "create", "put": "set", "patch": "update", "delete": "delete"}

    def get_operation_id(self) -> str:
        parts = self.path.removeprefix("/api/v1/").split("/")
        words = [part.replace("-", "_") for part in parts if not part.startswith("{")]
        verb = self.method_mapping[self.method.lower()]
        if verb == "show" and not parts[-1].startswith("{"):
            verb = "list" if words[-1].endswith("s") and words[-1] != "logs" else "show"
        if verb == "create" and words[-1] not in _MADE:
            return "_".join([words[-1], *words[:-1]])  # cancel_repositories_runs
        return "_".join([verb, *words])


NOTHING = OpenApiResponse(description="Done; there is nothing to say.")
PAGING = [
    OpenApiParameter("page", OpenApiTypes.INT, description="From 1 on."),
    OpenApiParameter("per_page", OpenApiTypes.INT, description="At most 100; 30 if left out."),
]


def errors(*statuses: int) -> dict[int, Any]:
    """Responses for `extend_schema`: these errors and those of every call."""
    chosen = {status: _ERRORS[status] for status in (*statuses, 503)} | _ALWAYS
    return {status: OpenApiResponse(shape, description=text) for status, (shape, text) in chosen.items()}


def pages(
    shape: type[serializers.Serializer[Any]], *statuses: int, parameters: Sequence[OpenApiParameter] = ()
) -> dict[str, Any]:
    """Options for `extend_schema` of a list: its parameters and its responses, with these errors too."""
    page = inline_serializer(
        f"PageOf{shape.__name__.removesuffix('Shape')}",
        {
            "count": serializers.IntegerField(help_text="How many there are on all pages."),
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": shape(many=True),
        },
    )
    return {
        "parameters": [*PAGING, *parameters],
        "responses": {200: page, **errors(401, 404, 429, *statuses)},
    }


BODY = (400, 413, 415)
"""What a call with a body may answer."""

"""How do the views say, for OpenAPI, which errors they answer?"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, OpenApiTypes, inline_serializer
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
    409: (_CONFLICT, "`job_ended`, `log_offset`, or `conflict`: the state does not allow it, `detail` says why."),
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
NOTHING = OpenApiResponse(description="Done; there is nothing to say.")
TEXT = OpenApiTypes.STR


def errors(*statuses: int) -> dict[int, Any]:
    """Responses for `extend_schema`: these errors and those of every call."""
    chosen = {status: _ERRORS[status] for status in (*statuses, 503)} | _ALWAYS
    return {status: OpenApiResponse(shape, description=text) for status, (shape, text) in chosen.items()}


BODY = (400, 413, 415)
"""What a call with a body may answer."""

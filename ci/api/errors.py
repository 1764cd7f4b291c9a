"""What does an error look like, from views and raw routes? JSON with `code`, for programs, and `detail`, for people."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from ci.api.bodies import BodyError
from ci.lifecycle import errors as lifecycle
from ci.storage.logs import LogLost

logger = logging.getLogger(__name__)

CHALLENGE = 'Bearer realm="forge"'
RETRY_AFTER_SECONDS = 1

_STATUS = {
    lifecycle.Unauthenticated: 401,
    lifecycle.NotAllowed: 403,
    lifecycle.Expired: 410,
    lifecycle.NotFound: 404,
    lifecycle.JobEnded: 409,
    lifecycle.Conflict: 409,
    lifecycle.LogOffset: 409,
    lifecycle.LogLimit: 413,
    lifecycle.InvalidInput: 400,
}
_CODES = {
    401: "unauthenticated",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    415: "unsupported_media_type",
    429: "throttled",
}
# Left to be read as text by programs that show it: `errors` names the fields.
_INVALID = "Some fields are not as they must be; `errors` says which."


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


def describe(error: BaseException) -> Answer | None:
    """The answer to a call that ended with this error; None for what nobody foresaw."""
    if isinstance(error, lifecycle.LifecycleError):
        return _from_lifecycle(error)
    if isinstance(error, BodyError):
        return Answer(error.status, {"code": error.code, "detail": error.detail})
    if isinstance(error, exceptions.APIException):
        return _from_framework(error)
    if isinstance(error, Http404):
        return Answer(404, {"code": "not_found", "detail": str(error) or "There is nothing at this address."})
    if isinstance(error, DjangoPermissionDenied):
        return Answer(403, {"code": "not_allowed", "detail": str(error) or "Your role does not allow this."})
    if isinstance(error, DjangoValidationError):
        return _invalid(_field_errors(error))
    if isinstance(error, LogLost):
        return Answer(404, {"code": "log_lost", "detail": str(error)})
    if isinstance(error, OperationalError | InterfaceError):
        logger.warning("the database did not answer: %s", (str(error).splitlines() or [type(error).__name__])[0])
        return unavailable("The database did not answer or was too busy. Try the same call again.")
    return None


def unavailable(detail: str) -> Answer:
    return Answer(503, {"code": "unavailable", "detail": detail}, {"Retry-After": str(RETRY_AFTER_SECONDS)})


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's EXCEPTION_HANDLER."""
    answer = describe(error)
    if answer is None:
        return None
    return Response(answer.body, status=answer.status, headers=dict(answer.headers))


def _from_lifecycle(error: lifecycle.LifecycleError) -> Answer:
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 400)
    body: dict[str, Any] = {"code": error.code, "detail": error.detail}
    if isinstance(error, lifecycle.JobEnded):
        body |= {"conclusion": error.conclusion, "reason": error.reason}
    elif isinstance(error, lifecycle.LogOffset | lifecycle.LogLimit):
        body["next_offset"] = error.next_offset
    elif isinstance(error, lifecycle.InvalidInput):
        body["errors"] = error.errors
    return Answer(status, body, {"WWW-Authenticate": CHALLENGE} if status == 401 else {})


def _from_framework(error: exceptions.APIException) -> Answer:
    headers = {}
    status = error.status_code
    if isinstance(error, exceptions.ValidationError):
        return _invalid(error.detail if isinstance(error.detail, dict) else {"non_field_errors": error.detail})
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        status, headers["WWW-Authenticate"] = 401, CHALLENGE
    if isinstance(error, exceptions.Throttled) and (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = str(max(1, round(wait)))
    return Answer(status, {"code": _CODES.get(status, "invalid"), "detail": str(error.detail)}, headers)


def _invalid(fields: Any) -> Answer:
    return Answer(400, {"code": "invalid", "detail": _INVALID, "errors": fields})


def _field_errors(error: DjangoValidationError) -> dict[str, list[str]]:
    if hasattr(error, "error_dict"):
        return error.message_dict
    return {"non_field_errors": error.messages}

"""How does a call of GitHub's results services reach its method? Twirp's JSON over POST, with the job's runtime token.

Source: the Twirp wire protocol v7 (routes, error codes and their statuses)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from ci.interop.runtime_calls import Malformed, body_of, caller
from ci.lifecycle import errors as lifecycle
from ci.models import Job
from ci.storage import blobs
from ci.storage.blob_errors import DigestBusy

logger = logging.getLogger(__name__)

# Fields have the names of the message definitions (snake_case) whichever of JSON's two spellings the client sent.
Method = Callable[[Job, Mapping[str, Any]], dict[str, Any]]
Services = Mapping[str, Mapping[str, Method]]

PACKAGE = "github.actions.results.api.v1"
STATUSES = {
    "malformed": 400,
    "invalid_argument": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "bad_route": 404,
    "not_found": 404,
    "already_exists": 409,
    "failed_precondition": 412,
    "resource_exhausted": 429,
    "internal": 500,
    "unavailable": 503,
}
# The first that fits; an ended job is no longer in the state that every call asks for.
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (lifecycle.Unauthenticated, "unauthenticated"),
    (lifecycle.NotAllowed, "permission_denied"),
    (lifecycle.NotFound, "not_found"),
    (lifecycle.AlreadyExists, "already_exists"),
    (lifecycle.JobEnded, "failed_precondition"),
    (lifecycle.Conflict, "failed_precondition"),
    (lifecycle.InvalidInput, "invalid_argument"),
    (Malformed, "malformed"),
    (blobs.BlobMissing, "failed_precondition"),  # begun anew, or given up, at this very moment
    (DigestBusy, "unavailable"),
)
_UPPER = re.compile("(?<=[a-z0-9])[A-Z]")


class TwirpError(Exception):
    """Answered with `code`, one of STATUSES, and `msg`, which clients show to people."""

    def __init__(self, code: str, msg: str) -> None:
        super().__init__(msg)
        self.code = code
        self.msg = msg


def view(services: Services) -> Callable[..., HttpResponseBase]:
    """The view of `<service>/<method>` for these services, by their names without the package."""

    @csrf_exempt
    def call(request: HttpRequest, service: str, method: str) -> HttpResponseBase:
        try:
            found = _method(request, services.get(service, {}).get(method))
            job = caller(request.headers.get("Authorization"))
            answer = found(job, {_snake(name): value for name, value in body_of(request).items()})
        except Exception as error:
            return _refusal(error)
        return _answer(200, answer)

    return call


def _method(request: HttpRequest, found: Method | None) -> Method:
    if found is None:
        raise TwirpError("bad_route", f"There is no method {request.path}.")
    if request.method != "POST":
        raise TwirpError("bad_route", "Use POST.")
    if request.content_type != "application/json":
        raise TwirpError("bad_route", "The Content-Type must be application/json.")
    return found


def _refusal(error: Exception) -> HttpResponseBase:
    if isinstance(error, TwirpError):
        return _answer(STATUSES[error.code], {"code": error.code, "msg": error.msg})
    for kind, code in _CODES:
        if isinstance(error, kind):
            return _answer(STATUSES[code], {"code": code, "msg": str(error)})
    if isinstance(error, blobs.BlobLost):
        logger.error("the storage lost bytes", exc_info=error)
        return _answer(500, {"code": "internal", "msg": "Bytes of it are missing in the forge's storage."})
    if isinstance(error, OperationalError | InterfaceError):
        logger.warning("the database did not answer: %s", type(error).__name__)
        return _answer(503, {"code": "unavailable", "msg": "The database did not answer. Try the same call again."})
    logger.error("a results service failed", exc_info=error)
    return _answer(500, {"code": "internal", "msg": "The server failed. The operator finds the cause in its log."})


def _answer(status: int, body: dict[str, Any]) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


def _snake(name: str) -> str:
    """workflowRunBackendId -> workflow_run_backend_id"""
    return _UPPER.sub(lambda found: f"_{found[0].lower()}", name)

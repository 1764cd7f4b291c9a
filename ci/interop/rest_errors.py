"""How do the older services, which are plain REST, say what is wrong? By status, and a `message` that clients show."""

from __future__ import annotations

import logging
from typing import Any

from django.db import InterfaceError, OperationalError

from ci.interop.bodies import BadBody
from ci.interop.runtime_calls import Malformed
from ci.lifecycle import errors as lifecycle
from ci.storage import blob_errors as blobs

logger = logging.getLogger(__name__)

# The first that fits.
_STATUSES: tuple[tuple[type[Exception], int, str], ...] = (
    (lifecycle.Unauthenticated, 401, "unauthenticated"),
    (lifecycle.NotAllowed, 403, "not_allowed"),
    (lifecycle.NotFound, 404, "not_found"),
    (lifecycle.AlreadyExists, 409, "already_exists"),
    (lifecycle.JobEnded, 409, "job_ended"),
    (lifecycle.Conflict, 409, "conflict"),
    (lifecycle.InvalidInput, 400, "invalid"),
    (Malformed, 400, "invalid"),
    (blobs.BlobMissing, 404, "not_found"),
    (blobs.BlobCommitted, 409, "conflict"),
    (blobs.BlobTooLarge, 413, "too_large"),
    (blobs.PutTooSlow, 503, "unavailable"),
)
_BODY_CODES = {413: "too_large", 503: "unavailable"}


def describe(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of the answer to a call that ended with this error."""
    if isinstance(error, BadBody):
        return error.status, {"code": _BODY_CODES.get(error.status, "invalid"), "message": str(error)}
    for kind, status, code in _STATUSES:
        if isinstance(error, kind):
            return status, {"code": code, "message": str(error)}
    if isinstance(error, OperationalError | InterfaceError):
        logger.warning("the database did not answer: %s", type(error).__name__)
        return 503, {"code": "unavailable", "message": "The database did not answer. Try the same call again."}
    logger.error("a runtime service failed", exc_info=error)
    return 500, {"code": "error", "message": "The server failed. The operator finds the cause in its log."}

"""Which error does a Connect call end with? One code of the protocol for each thing that can go wrong."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from django.db import InterfaceError, OperationalError

from ci.lifecycle import errors as lifecycle

logger = logging.getLogger(__name__)

# Source: the Connect protocol reference, "Error codes".
STATUSES = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}
# The first that fits. Runners branch on two codes alone: on `unimplemented`, and on `unauthenticated`, after which a
# Gitea runner exits. So that one is for a runner that is not known any more, and never for a fault that passes.
_CODES: tuple[tuple[type[lifecycle.LifecycleError], str], ...] = (
    (lifecycle.Unauthenticated, "unauthenticated"),
    (lifecycle.NotAllowed, "permission_denied"),
    (lifecycle.NotFound, "not_found"),
    (lifecycle.InvalidInput, "invalid_argument"),
    (lifecycle.LogLimit, "already_exists"),
    (lifecycle.JobEnded, "failed_precondition"),
    (lifecycle.Conflict, "aborted"),
)


class ConnectError(Exception):
    """`code` is one of STATUSES; `status` only where plain HTTP asks for another one."""

    def __init__(
        self, code: str, message: str, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status or STATUSES[code]
        self.headers = dict(headers or {})


def described(error: Exception) -> ConnectError | None:
    """What to answer to a call that ended with this error; None for what nobody foresaw."""
    if isinstance(error, ConnectError):
        return error
    if isinstance(error, lifecycle.LifecycleError):
        code = next((code for kind, code in _CODES if isinstance(error, kind)), "failed_precondition")
        return ConnectError(code, error.detail)
    if isinstance(error, OperationalError | InterfaceError):
        logger.warning("the database did not answer: %s", (str(error).splitlines() or [type(error).__name__])[0])
        return ConnectError("unavailable", "The database did not answer or was too busy. Try the same call again.")
    return None

"""Who calls a runtime service, and with what body? The job behind the bearer token, and one bounded JSON object."""

from __future__ import annotations

import json
import re
from typing import Any

from django.http import HttpRequest

from ci.lifecycle import runtime_tokens
from ci.lifecycle.errors import Unauthenticated
from ci.models import Job
from ci.workflow import storable
from ci.workflow.problems import PlanError

LARGEST_BODY = 64 * 1024
_BEARER = re.compile(r"(?:Bearer|bearer) +([A-Za-z0-9._-]+)")


class Malformed(Exception):
    """The body is no JSON object that can be read and kept; the text says why."""


def caller(authorization: str | None) -> Job:
    """The job whose runtime token the Authorization header carries. Raises Unauthenticated, JobEnded."""
    found = _BEARER.fullmatch((authorization or "").strip())
    if found is None:
        raise Unauthenticated("Send `Authorization: Bearer …` with ACTIONS_RUNTIME_TOKEN.")
    return runtime_tokens.job_of(found[1])


def body_of(request: HttpRequest) -> dict[str, Any]:
    """The JSON object sent; nothing at all is an empty one. Raises Malformed."""
    raw = request.read(LARGEST_BODY + 1)
    if len(raw) > LARGEST_BODY:
        raise Malformed(f"The body is larger than {LARGEST_BODY} bytes.")
    return parsed(raw)


def parsed(raw: bytes) -> dict[str, Any]:
    """Raises Malformed."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise Malformed("The body is not JSON.") from None
    if not isinstance(value, dict):
        raise Malformed("The body must be a JSON object.")
    try:
        storable.check(value, "The body")
    except PlanError as error:
        raise Malformed(f"{error}.") from None
    return value

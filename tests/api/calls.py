"""How do the API tests call, and what must every error look like?"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from ci.models import Event, Job, RegistrationToken, Runner

RUNNER_API = "/api/runner/v1/"
TIME = "2026-11-30T12:00:00.000000Z"


def call(
    method: str, path: str, *, token: str | None = None, body: Any = None, raw: bytes | None = None
) -> HttpResponse:
    """One call with JSON; `raw` sends these bytes as they are."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
    address = path if path.startswith("/") else RUNNER_API + path
    return Client().generic(method, address, content, content_type="application/json", headers=headers)


def error_of(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """The error's JSON, after checking that it is one: status, code, a sentence, and a challenge where one is due."""
    body = response.json()
    assert (response.status_code, body.get("code")) == (status, code), body
    assert body["detail"].strip(), body
    assert ("WWW-Authenticate" in response.headers) == (status == 401)
    return body


def lines(*texts: str) -> list[list[str]]:
    return [[TIME, text] for text in texts]


REGISTER = ("POST", "runners", {"name": "beta", "labels": ["linux"]})
RUNNER_CALLS = [
    ("GET", "runners/self", None),
    ("PATCH", "runners/self", {"name": "renamed"}),
    ("DELETE", "runners/self", None),
    ("POST", "jobs/fetch", {"poll_id": "p"}),
]
JOB_CALLS = [
    ("POST", "jobs/{id}/heartbeat", {}),
    ("PATCH", "jobs/{id}/steps", {"steps": []}),
    ("POST", "jobs/{id}/log", {"offset": 0, "lines": lines("x")}),
    ("POST", "jobs/{id}/complete", {"conclusion": "success"}),
]
NAMES = [f"{method} {path}" for method, path, _ in [REGISTER, *RUNNER_CALLS, *JOB_CALLS]]
CALLS = [("registration", *REGISTER), *(("runner", *c) for c in RUNNER_CALLS), *(("job", *c) for c in JOB_CALLS)]


def snapshot() -> list[Any]:
    """Everything that a refused call must leave as it is."""
    rows = [list(model.objects.order_by("pk").values()) for model in (Job, Runner)]
    tokens = list(RegistrationToken.objects.order_by("pk").values("id", "revoked_at"))
    return [*rows, tokens, Event.objects.count()]

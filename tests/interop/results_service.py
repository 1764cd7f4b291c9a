"""How do the tests call the results services without a client?"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from ci.models import Artifact
from tests.lifecycle.artifact_making import fill
from tests.playground import Assigned

ARTIFACTS = "github.actions.results.api.v1.ArtifactService"


def twirp(
    method: str,
    body: Any = None,
    *,
    token: str | None,
    service: str = ARTIFACTS,
    raw: bytes | None = None,
    content_type: str = "application/json",
    verb: str = "POST",
) -> HttpResponse:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    content = json.dumps(body or {}).encode() if raw is None else raw
    return Client().generic(verb, f"/twirp/{service}/{method}", content, content_type=content_type, headers=headers)


class Service:
    """ArtifactService, called by one job."""

    def __init__(self, assigned: Assigned) -> None:
        self.token = assigned.payload["runtime"]["token"]
        run_id, job_id = assigned.payload["job"]["run_id"], assigned.id
        self.ids = {"workflow_run_backend_id": str(run_id), "workflow_job_run_backend_id": str(job_id)}

    def __call__(self, method: str, **given: Any) -> HttpResponse:
        return twirp(method, {**self.ids, **given}, token=self.token)

    def upload(self, name: str, data: bytes = b"zip") -> Artifact:
        """Made, filled and finalized."""
        assert self("CreateArtifact", name=name, version=4).status_code == 200
        fill(Artifact.objects.get(name=name, finalized_at=None), data)
        answer = self("FinalizeArtifact", name=name, size=str(len(data)))
        assert answer.status_code == 200, answer.content
        return Artifact.objects.get(pk=answer.json()["artifact_id"])


def error_of(answer: HttpResponse, status: int, code: str) -> str:
    """The sentence of an error, after checking that it is one as Twirp has it."""
    body = answer.json()
    assert (answer.status_code, body.get("code")) == (status, code), body
    assert set(body) == {"code", "msg"}
    assert body["msg"].strip()
    return body["msg"]

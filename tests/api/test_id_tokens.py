"""Does a running job get an id token over HTTP, and can a stranger verify it with what is published?"""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.parse import quote

import httpx
import jwt
import pytest

from ci.lifecycle import registration
from ci.models import Job, JobState, Scope, SigningKey
from ci.storage import logs
from tests.api.calls import call, error_of
from tests.api.server import ROOT
from tests.lifecycle.test_id_tokens import MAY
from tests.playground import Assigned

RUNNER_SECONDS = 120
# What GitHub's toolkit does: the audience appended to the address as it is, the answer's `value` taken.
WORKFLOW = """
    on: push
    permissions: {id-token: write}
    jobs:
      deploy:
        runs-on: linux
        environment: production
        outputs:
          token: ${{ steps.ask.outputs.token }}
        steps:
          - id: ask
            run: |
              echo "asked with $ACTIONS_ID_TOKEN_REQUEST_TOKEN"
              python3 - >> "$GITHUB_OUTPUT" <<'EOF'
              import json, os, urllib.request
              url = os.environ["ACTIONS_ID_TOKEN_REQUEST_URL"] + "&audience=sts.example"
              bearer = {"Authorization": "Bearer " + os.environ["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]}
              answer = urllib.request.urlopen(urllib.request.Request(url, headers=bearer), timeout=30)
              print("token=" + json.load(answer)["value"])
              EOF
      other:
        runs-on: linux
        needs: deploy
        permissions: {contents: read}
        steps:
          - run: test -z "${ACTIONS_ID_TOKEN_REQUEST_URL+x}${ACTIONS_ID_TOKEN_REQUEST_TOKEN+x}"
"""


@pytest.fixture
def running(playground) -> Assigned:
    playground.run(MAY)
    return playground.assigned().begin()


def ask(assigned, query="", **options):
    url = assigned.payload["id_token"]["request_url"]
    path = "/api/" + url.partition("/api/")[2] + query
    return call("GET", path, token=options.get("token", assigned.payload["id_token"]["request_token"]))


def test_the_answer_is_the_token_and_no_cache_keeps_it(running):
    answer = ask(running, "&audience=" + quote("https://sts.example/a b", safe=""))
    assert answer.status_code == 200
    assert list(answer.json()) == ["value"]
    assert answer["Cache-Control"] == "no-store"
    claims = jwt.decode(answer.json()["value"], options={"verify_signature": False})
    assert claims["aud"] == "https://sts.example/a b"


def test_what_is_wrong_has_its_status(playground, running):
    error_of(ask(running, token=None), 401, "unauthenticated")
    error_of(ask(running, token="fri_1_" + "A" * 43), 401, "unauthenticated")
    error_of(ask(running, token=running.token), 403, "not_allowed")
    error_of(ask(running, "&audience=" + "a" * 1001), 400, "invalid")
    error_of(ask(running, "&audience=a&audience=b"), 400, "invalid")
    other = playground.run()
    path = f"/api/actions/_apis/pipelines/workflows/{other.pk}/idtoken"
    error_of(call("GET", path, token=running.payload["id_token"]["request_token"]), 403, "not_allowed")
    error_of(call("POST", path, token=running.payload["id_token"]["request_token"]), 405, "method_not_allowed")
    running.complete()
    assert error_of(ask(running), 409, "job_ended")["conclusion"] == "success"


def test_a_job_without_the_permission_is_forbidden(playground):
    playground.run()
    assigned = playground.assigned().begin()
    assert assigned.payload["id_token"] is None
    path = f"/api/actions/_apis/pipelines/workflows/{assigned.job.run_id}/idtoken"
    error_of(call("GET", path, token=assigned.token), 403, "not_allowed")


def test_the_request_token_opens_nothing_else(running):
    token = running.payload["id_token"]["request_token"]
    ended = call("POST", f"jobs/{running.id}/complete", token=token, body={"conclusion": "success"})
    error_of(ended, 401, "unauthenticated")
    error_of(call("GET", "/api/v1/repositories/alice/widgets", token=token), 401, "unauthenticated")
    assert Job.objects.get(pk=running.id).state == JobState.RUNNING


def test_discovery_needs_no_account(db):
    found = call("GET", "/api/actions/.well-known/openid-configuration")
    assert found.status_code == 200
    document = found.json()
    assert document["issuer"].endswith("/api/actions")
    assert document["jwks_uri"] == document["issuer"] + "/.well-known/keys"
    assert document["id_token_signing_alg_values_supported"] == ["RS256"]
    keys = call("GET", "/api/actions/.well-known/keys")
    assert [key["kid"] for key in keys.json()["keys"]] == [SigningKey.objects.get().kid]
    for answer in (found, keys):
        assert answer["Cache-Control"] == "public, max-age=60"


def test_a_job_on_the_bundled_runner_gets_one_that_a_stranger_verifies(world, server, tmp_path):
    run = world.run(WORKFLOW)
    _, token = registration.create_registration_token(scope=Scope(), created_by=world.operator)
    config = ["--config", str(tmp_path / "runner.json")]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, "FORGE_REGISTRATION_TOKEN": token}

    def runner(*words):
        subprocess.run(
            [sys.executable, "-m", "ci.runner", *words, *config],
            cwd=ROOT,
            env=environment,
            check=True,
            timeout=RUNNER_SECONDS,
        )

    runner("register", "--url", server.url, "--name", "alpha", "--labels", "linux")
    for _ in range(2):
        runner("once", "--work", str(tmp_path / "work"))
    jobs = {job.key: job for job in Job.objects.filter(run=run)}
    assert {key: job.conclusion for key, job in jobs.items()} == {"deploy": "success", "other": "success"}
    id_token = jobs["deploy"].outputs["token"]

    issuer = jwt.decode(id_token, options={"verify_signature": False})["iss"]
    assert issuer == f"{server.url}/api/actions"
    document = httpx.get(f"{issuer}/.well-known/openid-configuration", timeout=30).json()
    key = jwt.PyJWKClient(document["jwks_uri"]).get_signing_key_from_jwt(id_token)
    claims = jwt.decode(id_token, key, algorithms=["RS256"], audience="sts.example", issuer=document["issuer"])
    assert claims["sub"] == "repo:alice/widgets:environment:production"
    assert claims["run_id"] == str(run.pk)
    text = b"".join(logs.raw(jobs["deploy"].pk)).decode()
    assert "asked with ***" in text
    assert "fri_" not in text

"""Do the programs of a job see how to ask for id tokens, and those of any other job nothing of it?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeJob, FakeServer

URL = "http://forge.test/api/actions/_apis/pipelines/workflows/3/idtoken?placeholder=true"
TOKEN = "fri_7_R3qu3stT0k3n"
SHOW = {"name": "show", "run": 'echo "[${ACTIONS_ID_TOKEN_REQUEST_URL-none}] [${ACTIONS_ID_TOKEN_REQUEST_TOKEN-none}]"'}
# Whether the program has the token itself, which its log must not show.
HAS_IT = {"name": "has it", "run": f'test "$(printf %s "$ACTIONS_ID_TOKEN_REQUEST_TOKEN" | wc -c)" = {len(TOKEN)}'}


def granted(server: FakeServer, steps: list[dict[str, Any]], **options: Any) -> FakeJob:
    job = server.add(steps, **options)
    job.payload["id_token"] = {"request_url": URL, "request_token": TOKEN}
    return job


def test_its_programs_see_address_and_token_and_its_log_hides_the_token(server: FakeServer, runners: Runners) -> None:
    job = runners.run(granted(server, [SHOW, HAS_IT]))
    assert job.conclusion == "success"
    assert f"[{URL}] [***]" in job.lines_of("show")
    assert TOKEN not in job.text


def test_a_workflow_cannot_put_another_address_in_its_place(server: FakeServer, runners: Runners) -> None:
    elsewhere = {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://evil.test/"}
    write = {"run": 'echo "ACTIONS_ID_TOKEN_REQUEST_URL=http://evil.test/" >> "$GITHUB_ENV"'}
    job = runners.run(granted(server, [write, {**SHOW, "env": elsewhere}], env=elsewhere))
    assert f"[{URL}] [***]" in job.lines_of("show")


@pytest.mark.parametrize("given", [None, {}, {"request_url": URL}])
def test_a_job_that_was_given_none_sees_none(server: FakeServer, runners: Runners, given: Any) -> None:
    job = server.add([SHOW])
    job.payload["id_token"] = given
    # The runner's own environment is not the job's either.
    runners.run(job, env={"ACTIONS_ID_TOKEN_REQUEST_URL": URL, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": TOKEN})
    assert "[none] [none]" in job.lines_of("show")


def test_what_a_program_masks_is_hidden_as_the_toolkit_masks_id_tokens(server: FakeServer, runners: Runners) -> None:
    id_token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyZXBvOm8vciJ9.c2lnbmF0dXJl"
    steps = [{"name": "ask", "run": f'echo "::add-mask::{id_token}"\necho "got {id_token}"'}]
    job = runners.run(granted(server, steps))
    assert "got ***" in job.lines_of("ask")

"""Does a poll get the job that fits, and the same job again when its answer was lost? (Waiting: see test_wait.py.)"""

import pytest

from ci.models import Job, JobState
from tests.api.calls import call, error_of


def fetch(token, poll_id="poll-1", **body):
    return call("POST", "jobs/fetch", token=token, body={"poll_id": poll_id, **body})


def test_it_gets_the_job_with_all_a_runner_needs(playground, runner_token):
    run = playground.run()
    response = fetch(runner_token)
    assert response.status_code == 200
    payload = response.json()
    keys = {"job", "workflow", "definition", "contexts", "actions_sources", "id_token", "runtime", "masks"}
    assert set(payload) == keys
    job = payload["job"]
    assert (job["name"], job["run_id"], job["assignment"], job["log_offset"]) == ("build", run.pk, 1, 0)
    assert payload["contexts"]["github"]["sha"] == run.sha
    assert job["token"] in payload["masks"]
    assert call("POST", f"jobs/{job['id']}/heartbeat", token=job["token"]).status_code == 200


def test_with_nothing_to_do_the_answer_is_empty(runner_token):
    response = fetch(runner_token)
    assert (response.status_code, response.content) == (204, b"")


def test_a_job_for_other_labels_is_left_alone(playground, runner_token):
    playground.run("on: push\njobs:\n  build:\n    runs-on: gpu\n    steps:\n      - run: echo\n")
    assert fetch(runner_token).status_code == 204
    assert Job.objects.get().state == JobState.QUEUED


def test_the_same_poll_gets_the_same_job_and_a_token_that_works(playground, runner_token):
    playground.run()
    first, second = fetch(runner_token).json(), fetch(runner_token).json()
    assert first["job"]["id"] == second["job"]["id"]
    assert first["job"]["token"] != second["job"]["token"]
    path = f"jobs/{first['job']['id']}/heartbeat"
    error_of(call("POST", path, token=first["job"]["token"]), 401, "unauthenticated")
    assert call("POST", path, token=second["job"]["token"]).status_code == 200


def test_another_poll_gets_no_second_job_while_the_first_runs(playground, runner_token):
    playground.run()
    playground.run()
    assert fetch(runner_token, "a").status_code == 200
    assert fetch(runner_token, "b").status_code == 204


@pytest.mark.parametrize("poll_id", [None, "", "x" * 65, "two words", "ü", "line\n", True, ["a"], {}])
def test_it_refuses_what_is_no_poll_id(playground, runner_token, poll_id):
    playground.run()
    error = error_of(fetch(runner_token, poll_id), 400, "invalid")
    assert list(error["errors"]) == ["poll_id"]
    assert Job.objects.get().state == JobState.QUEUED


@pytest.mark.parametrize("wait", [-1, 50.1, 10**30, "5", True, None, [], {}])
def test_it_refuses_what_is_no_wait(playground, runner_token, wait):
    playground.run()
    error = error_of(fetch(runner_token, wait=wait), 400, "invalid")
    assert list(error["errors"]) == ["wait"]
    assert Job.objects.get().state == JobState.QUEUED

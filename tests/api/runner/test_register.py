"""How does a runner register, describe itself and leave over HTTP?"""

import pytest

from ci.lifecycle import registration
from ci.models import Job, JobState, Runner, Scope
from tests.api.calls import call, error_of


def test_a_registered_runner_can_use_its_token(playground, registration_token):
    body = {"name": "beta", "labels": ["Linux", "gpu"], "version": "1.0", "os": "linux", "arch": "arm64"}
    response = call("POST", "runners", token=registration_token, body=body)
    assert response.status_code == 201
    answer = response.json()
    assert set(answer) == {"id", "name", "labels", "ephemeral", "token"}
    assert (answer["name"], answer["labels"], answer["ephemeral"]) == ("beta", ["Linux", "gpu"], False)
    assert answer["token"].startswith("frr_")
    shown = call("GET", "runners/self", token=answer["token"]).json()
    assert shown == {
        "id": answer["id"],
        "name": "beta",
        "labels": ["Linux", "gpu"],
        "paused": False,
        "ephemeral": False,
        "phase": "pending",
        "version": "1.0",
        "os": "linux",
        "arch": "arm64",
    }


def test_it_gets_the_scope_of_its_token(playground):
    _, token = registration.create_registration_token(
        scope=Scope(repository=playground.repository), created_by=playground.alice
    )
    answer = call("POST", "runners", token=token, body={"name": "beta", "labels": ["x"], "ephemeral": True}).json()
    runner = Runner.objects.get(pk=answer["id"])
    assert runner.repository == playground.repository
    assert runner.ephemeral


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": ["beta"]}, "name"),
        ({"labels": []}, "labels"),
        ({"labels": "linux"}, "labels"),
        ({"labels": ["linux", ""]}, "labels"),
        ({"labels": ["x" * 101]}, "labels"),
        ({"labels": [f"l{n}" for n in range(101)]}, "labels"),
        ({"labels": ["two,labels"]}, "labels"),
        ({"labels": [{}]}, "labels"),
        ({"ephemeral": "maybe"}, "ephemeral"),
        ({"version": "x" * 51}, "version"),
        ({"os": {}}, "os"),
    ],
)
def test_it_names_the_field_that_is_wrong(registration_token, change, field):
    body = {"name": "beta", "labels": ["linux"], **change}
    error = error_of(call("POST", "runners", token=registration_token, body=body), 400, "invalid")
    assert list(error["errors"]) == [field]
    assert not Runner.objects.exists()


def test_an_empty_body_names_what_is_missing(registration_token):
    error = error_of(call("POST", "runners", token=registration_token), 400, "invalid")
    assert set(error["errors"]) == {"name", "labels"}


def test_a_runner_changes_what_it_says_of_itself(runner, runner_token):
    response = call("PATCH", "runners/self", token=runner_token, body={"labels": ["linux", "gpu"], "version": "2"})
    assert response.status_code == 200
    assert response.json()["labels"] == ["linux", "gpu"]
    runner.refresh_from_db()
    assert (runner.labels, runner.agent_version, runner.name) == (["linux", "gpu"], "2", "alpha")


@pytest.mark.parametrize("body", [{"labels": []}, {"name": ""}, {"arch": "x" * 51}, {"labels": None}])
def test_a_change_that_is_wrong_changes_nothing(runner, runner_token, body):
    error_of(call("PATCH", "runners/self", token=runner_token, body=body), 400, "invalid")
    runner.refresh_from_db()
    assert (runner.labels, runner.name, runner.version) == (["linux"], "alpha", 0)


def test_a_runner_cannot_unpause_itself(playground, runner, runner_token):
    registration.pause_runner(runner_id=runner.pk, paused=True, actor=playground.operator)
    assert call("PATCH", "runners/self", token=runner_token, body={"paused": False}).json()["paused"] is True


def test_a_runner_that_leaves_is_gone_and_its_job_goes_back(assigned, runner_token):
    response = call("DELETE", "runners/self", token=runner_token)
    assert (response.status_code, response.content) == (204, b"")
    assert not Runner.objects.exists()
    assert Job.objects.get().state == JobState.QUEUED
    error_of(call("GET", "runners/self", token=runner_token), 401, "unauthenticated")

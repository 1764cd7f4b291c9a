"""Are secrets, variables, runners and registration tokens set in their own scope, and secret values never shown?"""

import pytest

from ci.models import RegistrationToken, Runner, Secret, Variable
from tests.api.calls import call, error_of

SCOPES = ["repositories/alice/widgets", "user"]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_secret_is_set_replaced_and_deleted_and_never_shown(repository, alice, scope):
    for value in ("first-value", "second-value"):
        answer = alice("PUT", f"{scope}/secrets/deploy_key", {"value": value})
        assert answer.status_code == 200
        assert set(answer.json()) == {"name", "created_at", "updated_at"}
    listed = alice.get(f"{scope}/secrets")
    assert [row["name"] for row in listed.json()["results"]] == ["DEPLOY_KEY"]
    assert b"-value" not in listed.content
    assert "-value" not in Secret.objects.get().encrypted
    assert alice("DELETE", f"{scope}/secrets/Deploy_Key").status_code == 204
    error_of(alice("DELETE", f"{scope}/secrets/DEPLOY_KEY"), 404, "not_found")


@pytest.mark.parametrize("scope", SCOPES)
def test_a_variable_is_set_shown_and_deleted(repository, alice, scope):
    assert alice("PUT", f"{scope}/variables/LEVEL", {"value": ""}).json()["value"] == ""
    assert alice("PUT", f"{scope}/variables/LEVEL", {"value": " 2 "}).json()["value"] == " 2 "
    assert [(row["name"], row["value"]) for row in alice.get(f"{scope}/variables").json()["results"]] == [
        ("LEVEL", " 2 ")
    ]
    assert alice("DELETE", f"{scope}/variables/LEVEL").status_code == 204
    assert not Variable.objects.exists()


@pytest.mark.parametrize("kind", ["secrets", "variables"])
@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "1x", "with-dash", "a b", "ü", "x" * 256])
def test_a_name_that_cannot_be_used_is_refused(repository, alice, kind, name):
    answer = alice("PUT", f"user/{kind}/{name}", {"value": "x"})
    assert answer.status_code in (400, 404)
    assert not Secret.objects.exists()
    assert not Variable.objects.exists()


@pytest.mark.parametrize("body", [{}, {"value": None}, {"value": ""}, {"value": "x" * 49153}, {"value": ["x"]}])
def test_a_value_that_cannot_be_used_is_refused(alice, body):
    error = error_of(alice("PUT", "user/secrets/KEY", body), 400, "invalid")
    assert list(error["errors"]) == ["value"]


@pytest.mark.parametrize("scope", [*SCOPES, "instance"])
def test_a_registration_token_is_shown_once_works_and_is_revoked(repository, alice, operator, scope):
    person = operator if scope == "instance" else alice
    made = person.post(f"{scope}/registration-tokens").json()
    assert made["token"].startswith("frg_")
    listed = person.get(f"{scope}/registration-tokens")
    assert made["token"].encode() not in listed.content
    assert [row["hint"] for row in listed.json()["results"]] == [made["token"][:8]]
    registered = call("POST", "runners", token=made["token"], body={"name": "beta", "labels": ["x"]})
    assert registered.status_code == 201
    assert [row["name"] for row in person.get(f"{scope}/runners").json()["results"]] == ["beta"]
    assert person("DELETE", f"{scope}/registration-tokens/{made['id']}").status_code == 204
    error_of(person("DELETE", f"{scope}/registration-tokens/{made['id']}"), 409, "conflict")
    refused = call("POST", "runners", token=made["token"], body={"name": "gamma", "labels": ["x"]})
    error_of(refused, 401, "unauthenticated")


@pytest.mark.parametrize("expires_at", ["soon", 5, "2026-13-01T00:00:00Z"])
def test_what_is_no_expiry_is_refused(alice, expires_at):
    error_of(alice.post("user/registration-tokens", {"expires_at": expires_at}), 400, "invalid")
    assert not RegistrationToken.objects.exists()


def test_a_runner_is_paused_resumed_and_removed(playground, operator):
    runner = playground.runner()
    address = f"instance/runners/{runner.pk}"
    assert operator("PATCH", address, {"paused": True}).json()["paused"] is True
    error_of(operator("PATCH", address, {"paused": True}), 409, "conflict")
    error_of(operator("PATCH", address, {"paused": False, "version": 0}), 409, "conflict")
    error_of(operator("PATCH", address, {}), 400, "invalid")
    assert operator("PATCH", address, {"paused": False}).json()["paused"] is False
    assert operator("DELETE", address).status_code == 204
    assert not Runner.objects.exists()
    error_of(operator.get(address), 404, "not_found")

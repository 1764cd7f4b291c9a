"""Is every call of a repository 404 to strangers, 403 to those whose role is too low, and open to the rest?"""

import pytest

from ci.lifecycle import registration, settings_values
from ci.lifecycle.runner_sets import save_runner_set
from ci.models import Event, Job, RegistrationToken, Run, Runner, RunnerSet, Scope, Secret, Variable
from forge.models import Member, Repository
from tests.api.calls import error_of

IMAGE = {"image": "ghcr.example/runner:1"}
# (method, address below the repository, body, the lowest role that may: read, write or admin)
CALLS = [
    ("GET", "", None, "read"),
    ("PATCH", "", {"description": "new"}, "admin"),
    ("DELETE", "", None, "admin"),
    ("GET", "/members", None, "admin"),
    ("PUT", "/members/carol", {"role": "write"}, "admin"),
    ("DELETE", "/members/carol", None, "admin"),
    ("GET", "/workflows", None, "read"),
    ("GET", "/workflows/ci.yml", None, "read"),
    ("POST", "/workflows/ci.yml/dispatches", {"ref": "main"}, "write"),
    ("GET", "/runs", None, "read"),
    ("GET", "/runs/{run}", None, "read"),
    ("GET", "/runs/{run}/jobs", None, "read"),
    ("POST", "/runs/{run}/cancel", {}, "write"),
    ("POST", "/runs/{run}/force-cancel", {}, "write"),
    ("POST", "/runs/{run}/rerun", {}, "write"),
    ("POST", "/runs/{run}/rerun-failed", {}, "write"),
    ("GET", "/jobs/{job}", None, "read"),
    ("GET", "/jobs/{job}/logs", None, "read"),
    ("POST", "/jobs/{job}/cancel", {}, "write"),
    ("POST", "/jobs/{job}/rerun", {}, "write"),
    ("GET", "/secrets", None, "admin"),
    ("PUT", "/secrets/KEY", {"value": "x"}, "admin"),
    ("DELETE", "/secrets/KEY", None, "admin"),
    ("GET", "/variables", None, "admin"),
    ("PUT", "/variables/KEY", {"value": "x"}, "admin"),
    ("DELETE", "/variables/KEY", None, "admin"),
    ("GET", "/runners", None, "admin"),
    ("GET", "/runners/{runner}", None, "admin"),
    ("PATCH", "/runners/{runner}", {"paused": True}, "admin"),
    ("DELETE", "/runners/{runner}", None, "admin"),
    ("GET", "/registration-tokens", None, "admin"),
    ("POST", "/registration-tokens", {}, "admin"),
    ("DELETE", "/registration-tokens/{token}", None, "admin"),
    ("GET", "/runner-sets", None, "admin"),
    ("POST", "/runner-sets", {"name": "new", "labels": ["x"], "launcher": "docker", "template": IMAGE}, "admin"),
    ("GET", "/runner-sets/{set}", None, "admin"),
    ("PATCH", "/runner-sets/{set}", {"maximum": 9}, "admin"),
    ("POST", "/runner-sets/{set}/recover", {}, "admin"),
    ("GET", "/runner-sets/{set}/runners", None, "admin"),
    ("DELETE", "/runner-sets/{set}", None, "admin"),
]
IDS = [f"{method} {path}" for method, path, _, _ in CALLS]


@pytest.fixture
def rows(playground, repository):
    """What the addresses above name."""
    scope = Scope(repository=repository)
    run = playground.run()
    runner = playground.runner("gpu", scope=scope)
    settings_values.set_secret(scope=scope, name="KEY", value="hidden", actor=playground.alice)
    settings_values.set_variable(scope=scope, name="KEY", value="open", actor=playground.alice)
    token, _ = registration.create_registration_token(scope=scope, created_by=playground.alice)
    fields = {"name": "pool", "labels": ["linux"], "launcher": "docker", "template": IMAGE, "repository": repository}
    pool = save_runner_set(runner_set_id=None, fields=fields, version=None, actor=playground.alice)
    job = Job.objects.get(run=run)
    return {"run": run.pk, "job": job.pk, "runner": runner.pk, "token": token.pk, "set": pool.pk}


def snapshot():
    kept = [Repository, Member, Run, Job, Runner, RegistrationToken, RunnerSet, Secret, Variable]
    return [list(model.objects.order_by("pk").values()) for model in kept] + [Event.objects.count()]


@pytest.mark.parametrize(("method", "path", "body", "role"), CALLS, ids=IDS)
def test_strangers_see_nothing_and_lower_roles_do_nothing(
    rows, alice, bob, carol, mallory, visitor, method, path, body, role
):
    address = "repositories/alice/widgets" + path.format(**rows)
    before = snapshot()
    error_of(mallory(method, address, body), 404, "not_found")
    stranger = visitor(method, address, body)
    assert stranger.status_code in (401, 404)
    for person, its_role in ((carol, "read"), (bob, "write")):
        allowed = ["read", "write", "admin"].index(its_role) >= ["read", "write", "admin"].index(role)
        if not allowed:
            error_of(person(method, address, body), 403, "not_allowed")
    assert snapshot() == before
    lowest = {"read": carol, "write": bob, "admin": alice}[role]
    assert lowest(method, address, body).status_code in (200, 201, 202, 204, 409)


@pytest.mark.parametrize(("method", "path", "body", "role"), CALLS, ids=IDS)
def test_on_a_public_repository_visitors_only_read(playground, rows, repository, visitor, method, path, body, role):
    Repository.objects.update(private=False)
    answer = visitor(method, "repositories/alice/widgets" + path.format(**rows), body)
    if role == "read":
        assert answer.status_code == 200
    else:
        error_of(answer, 401, "unauthenticated")


@pytest.mark.parametrize(("method", "path", "body", "role"), CALLS, ids=IDS)
def test_rows_of_another_repository_are_not_found(playground, rows, alice, method, path, body, role):
    """alice may do everything in both, but not reach through one into the other."""
    if "{" not in path:
        return
    playground.make_repository(name="other")
    before = snapshot()
    error_of(alice(method, "repositories/alice/other" + path.format(**rows), body), 404, "not_found")
    assert snapshot() == before


@pytest.mark.parametrize("kind", ["secrets", "variables"])
def test_values_of_another_scope_are_not_found(playground, rows, alice, bob, kind):
    playground.make_repository(name="other")
    for person, address in ((alice, "repositories/alice/other"), (alice, "user"), (bob, "user")):
        error_of(person("DELETE", f"{address}/{kind}/KEY"), 404, "not_found")
        assert person.get(f"{address}/{kind}").json()["results"] == []


INSTANCE = [
    ("GET", "runners", None),
    ("GET", "runners/{runner}", None),
    ("PATCH", "runners/{runner}", {"paused": True}),
    ("DELETE", "runners/{runner}", None),
    ("GET", "registration-tokens", None),
    ("POST", "registration-tokens", {}),
    ("DELETE", "registration-tokens/{token}", None),
    ("GET", "runner-sets", None),
    ("POST", "runner-sets", {"name": "new", "labels": ["x"], "launcher": "local"}),
    ("GET", "runner-sets/{set}", None),
    ("PATCH", "runner-sets/{set}", {"maximum": 9}),
    ("DELETE", "runner-sets/{set}", None),
    ("POST", "runner-sets/{set}/recover", {}),
    ("GET", "runner-sets/{set}/runners", None),
]


@pytest.mark.parametrize(("method", "path", "body"), INSTANCE, ids=[f"{m} {p}" for m, p, _ in INSTANCE])
def test_the_instance_is_the_operators(playground, alice, visitor, operator, method, path, body):
    fields = {"name": "pool", "labels": ["linux"]}
    pool = save_runner_set(runner_set_id=None, fields=fields, version=None, actor=playground.operator)
    rows = {"runner": playground.runner().pk, "token": RegistrationToken.objects.get().pk, "set": pool.pk}
    address = "instance/" + path.format(**rows)
    before = snapshot()
    error_of(alice(method, address, body), 403, "not_allowed")
    error_of(visitor(method, address, body), 401, "unauthenticated")
    assert snapshot() == before
    assert operator(method, address, body).status_code in (200, 201, 202, 204, 409)


@pytest.mark.parametrize("path", ["secrets", "variables", "runners", "registration-tokens", "runner-sets"])
def test_what_is_a_persons_own_takes_a_person(visitor, alice, path):
    error_of(visitor.get(f"user/{path}"), 401, "unauthenticated")
    assert alice.get(f"user/{path}").json()["count"] == 0


@pytest.mark.parametrize(
    "path",
    [
        "repositories/alice/nothing",
        "repositories/nobody/widgets",
        "repositories/alice/wid%00gets",
        "repositories/alice/widgets/runs/0",
        "repositories/alice/widgets/runs/" + "9" * 40,
        "repositories/alice/widgets/jobs/999999",
        "repositories/alice/widgets/workflows/%00",
        "nothing",
    ],
)
def test_what_is_not_there_is_not_found(repository, alice, path):
    assert alice.get(path).status_code == 404


def test_names_compare_without_case(repository, carol):
    assert carol.get("repositories/ALICE/Widgets").json()["name"] == "widgets"

"""Are runner sets made, read, changed, recovered and deleted by the API, in each scope, by whom they belong to?"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ci.lifecycle.runner_sets import save_runner_set
from ci.models import Event, Job, LaunchAttempt, Runner, RunnerSet
from ci.scaling.launchers.protocol import TransientLaunchError
from tests.api.calls import error_of
from tests.scaling.world import World

IMAGE = {"image": "ghcr.example/runner:1"}
NEW = {"name": "pool", "labels": ["Linux", "x64"], "launcher": "docker", "template": IMAGE, "minimum": 1, "maximum": 3}
SCOPES = ["repositories/alice/widgets", "user", "instance"]


@pytest.fixture
def world(playground):
    return World(playground)


@pytest.fixture
def pool(world):
    """A set of the instance with two runners at most."""
    return world.make_set(maximum=2)


def _person(scope, alice, operator):
    return operator if scope == "instance" else alice


@pytest.mark.parametrize("scope", SCOPES)
def test_a_set_is_made_listed_shown_changed_and_deleted(repository, alice, operator, playground, scope):
    """Should create/add all required resources for a new EphemeralRunnerSet: one row, and no finalizer."""
    person, base = _person(scope, alice, operator), f"{scope}/runner-sets"
    made = person.post(base, NEW)
    assert made.status_code == 201
    shown = made.json()
    assert shown["labels"] == ["linux", "x64"]
    assert {name: shown[name] for name in ("minimum", "maximum", "launcher", "template", "phase", "spec_revision")} == {
        **{"minimum": 1, "maximum": 3, "launcher": "docker", "template": IMAGE, "phase": "running", "spec_revision": 1}
    }
    row = RunnerSet.objects.get()
    expected = {"repositories/alice/widgets": (None, repository), "user": (playground.alice, None)}
    assert (row.owner, row.repository) == expected.get(scope, (None, None))
    assert Event.objects.get(kind="runner_set_created").actor_name == ("operator" if scope == "instance" else "alice")
    address = f"{base}/{shown['id']}"
    assert person.get(base).json()["results"] == [shown] == [person.get(address).json()]
    changed = person("PATCH", address, {"maximum": 7, "version": shown["version"]})
    assert changed.status_code == 200
    assert changed.json() == {**shown, "maximum": 7, "version": shown["version"] + 1}
    deleted = person("DELETE", address)
    assert deleted.status_code == 202
    assert (deleted.json()["phase"], deleted.json()["deleting_at"] is None) == ("deleting", False)
    error_of(person("DELETE", address), 409, "conflict")
    error_of(person("PATCH", address, {"maximum": 1}), 409, "conflict")


@pytest.mark.parametrize("scope", SCOPES)
def test_a_set_of_another_scope_is_not_found(playground, repository, alice, operator, scope):
    bases = {one: f"{one}/runner-sets" for one in SCOPES}
    made = _person(scope, alice, operator).post(bases.pop(scope), NEW).json()
    for other, base in bases.items():
        person = _person(other, alice, operator)
        assert person.get(base).json()["results"] == []
        for method, rest in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/recover"), ("GET", "/runners")):
            error_of(person(method, f"{base}/{made['id']}{rest}", {}), 404, "not_found")
    assert RunnerSet.objects.get().version == 0


def test_ones_own_sets_are_not_another_persons(playground, repository, alice, bob):
    made = alice.post("user/runner-sets", NEW).json()
    error_of(bob.get(f"user/runner-sets/{made['id']}"), 404, "not_found")
    assert bob.get("user/runner-sets").json()["count"] == 0


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"labels": []}, "labels"),
        ({"labels": ["  "]}, "labels"),
        ({"labels": ["x"] * 51}, "labels"),
        ({"labels": ["x" * 101]}, "labels"),
        ({"minimum": 4}, "minimum"),
        ({"minimum": -1}, "minimum"),
        ({"maximum": 10_001}, "maximum"),
        ({"maximum_per_repository": 0}, "maximum_per_repository"),
        ({"launcher": "rocket"}, "launcher"),
        ({"launcher": None}, "launcher"),
        ({"template": {"imgae": "x"}}, "template"),
        ({"template": ["x"]}, "template"),
        ({"repositories": ["alice/nothing"]}, "repositories"),
        ({"repositories": ["widgets"]}, "repositories"),
        ({"repositories": ["x"] * 201}, "repositories"),
    ],
)
def test_wrong_input_is_an_error_of_its_field_and_changes_nothing(repository, alice, wrong, field):
    error = error_of(alice.post("user/runner-sets", {**NEW, **wrong}), 400, "invalid")
    assert list(error["errors"]) == [field]
    assert not RunnerSet.objects.exists()
    made = alice.post("user/runner-sets", NEW).json()
    error = error_of(alice("PATCH", f"user/runner-sets/{made['id']}", wrong), 400, "invalid")
    assert list(error["errors"]) == [field]
    assert RunnerSet.objects.get().version == 0


@pytest.mark.parametrize("missing", ["name", "labels", "launcher"])
def test_what_a_set_must_have_is_asked_for(alice, missing):
    body = {name: value for name, value in NEW.items() if name != missing}
    assert list(error_of(alice.post("user/runner-sets", body), 400, "invalid")["errors"]) == [missing]


def test_a_name_is_used_once_a_scope(alice):
    assert alice.post("user/runner-sets", NEW).status_code == 201
    error_of(alice.post("user/runner-sets", NEW), 400, "invalid")
    assert RunnerSet.objects.count() == 1


def test_a_change_on_an_old_version_is_a_conflict_and_changes_nothing(alice):
    made = alice.post("user/runner-sets", NEW).json()
    address = f"user/runner-sets/{made['id']}"
    assert alice("PATCH", address, {"maximum": 5, "version": 0}).json()["version"] == 1
    for method, rest, body in (
        ("PATCH", "", {"maximum": 9, "version": 0}),
        ("DELETE", "?version=0", None),
        ("POST", "/recover", {"version": 0}),
    ):
        error_of(alice(method, address + rest, body), 409, "conflict")
    row = RunnerSet.objects.get()
    assert (row.maximum, row.version, row.phase) == (5, 1, "running")


def test_a_change_of_labels_launcher_or_template_is_a_new_revision(alice):
    made = alice.post("user/runner-sets", NEW).json()
    address = f"user/runner-sets/{made['id']}"
    assert alice("PATCH", address, {"maximum": 5}).json()["spec_revision"] == 1
    assert alice("PATCH", address, {"labels": ["gpu"]}).json()["spec_revision"] == 2
    assert alice("PATCH", address, {"template": {"image": "x:2"}}).json()["spec_revision"] == 3
    assert alice("PATCH", address, {"template": {"image": "x:2"}}).json()["version"] == 3


def test_nothing_said_of_a_field_leaves_it(repository, alice):
    body = {**NEW, "maximum_per_repository": 2, "repositories": ["alice/widgets"]}
    made = alice.post("user/runner-sets", body).json()
    address = f"user/runner-sets/{made['id']}"
    assert alice("PATCH", address, {}).json() == made
    changed = alice("PATCH", address, {"name": "other"}).json()
    assert (changed["maximum_per_repository"], changed["repositories"]) == (2, ["alice/widgets"])
    emptied = alice("PATCH", address, {"maximum_per_repository": None, "repositories": []}).json()
    assert (emptied["maximum_per_repository"], emptied["repositories"]) == (None, [])


def test_it_may_be_limited_to_repositories_that_it_serves(playground, alice, mallory, repository, operator):
    made = alice.post("user/runner-sets", {**NEW, "repositories": ["Alice/Widgets"]}).json()
    assert made["repositories"] == ["alice/widgets"]
    # mallory cannot see it: whether it is there is not told.
    secret = error_of(mallory.post("user/runner-sets", {**NEW, "repositories": ["alice/widgets"]}), 400, "invalid")
    nothing = error_of(mallory.post("user/runner-sets", {**NEW, "repositories": ["alice/nothing"]}), 400, "invalid")
    assert secret["errors"]["repositories"].replace("widgets", "nothing") == nothing["errors"]["repositories"]
    error = error_of(operator.post("user/runner-sets", {**NEW, "repositories": ["alice/widgets"]}), 400, "invalid")
    assert "may serve" in error["errors"]["repositories"]
    assert operator.post("instance/runner-sets", {**NEW, "repositories": ["alice/widgets"]}).status_code == 201


@pytest.mark.parametrize("scope", ["repositories/alice/widgets", "user"])
def test_only_administrators_of_the_instance_may_choose_local_processes(repository, alice, operator, scope):
    local = {"name": "pool", "labels": ["linux"], "launcher": "local"}
    error = error_of(alice.post(f"{scope}/runner-sets", local), 400, "invalid")
    assert list(error["errors"]) == ["launcher"]
    made = alice.post(f"{scope}/runner-sets", NEW).json()
    address = f"{scope}/runner-sets/{made['id']}"
    error = error_of(alice("PATCH", address, {"launcher": "local", "template": {}}), 400, "invalid")
    assert list(error["errors"]) == ["launcher"]
    assert RunnerSet.objects.get().launcher == "docker"
    assert operator.post("user/runner-sets", local).status_code == 201


@pytest.mark.parametrize("trusted", [False, True])
def test_only_administrators_of_the_instance_may_write_privileged_templates(alice, operator, settings, trusted):
    settings.SCALE_TRUSTED_TEMPLATES = trusted
    body = {**NEW, "template": {**IMAGE, "privileged": True}}
    assert list(error_of(alice.post("user/runner-sets", body), 400, "invalid")["errors"]) == ["template"]
    made = alice.post("user/runner-sets", NEW).json()
    address = f"user/runner-sets/{made['id']}"
    error = error_of(alice("PATCH", address, {"template": body["template"]}), 400, "invalid")
    assert list(error["errors"]) == ["template"]
    assert operator.post("instance/runner-sets", body).status_code == (201 if trusted else 400)


def test_it_says_how_many_runners_do_what(world, pool, operator):
    """Row 31. (Should update status on Ephemeral Runner state changes.)"""
    world.queue(3)
    world.scale()
    (assigned, *_) = world.poll_all()
    assigned.begin()
    address = f"instance/runner-sets/{pool.pk}"
    names = ("desired", "assigned", "busy", "idle", "starting", "leaving", "on_new_revision")
    assert [operator.get(address).json()[name] for name in names] == [2, 3, 2, 0, 0, 0, 2]
    assigned.complete()
    world.scale()
    shown = operator.get(address).json()
    assert [shown[name] for name in names] == [2, 2, 1, 0, 0, 1, 1]
    world.launcher.end(world.handle(assigned.runner), 0)
    world.scale(2)
    shown = operator.get(address).json()
    assert [shown[name] for name in names] == [2, 2, 1, 0, 1, 0, 2]
    assert operator("PATCH", address, {"labels": ["linux", "new"]}).json()["on_new_revision"] == 0


def test_its_runners_are_listed_with_each_attempt_the_newest_first(world, pool, operator):
    world.launcher.refusals = [TransientLaunchError("the engine is away")]
    world.queue(2)
    world.scale(2)
    listed = operator.get(f"instance/runner-sets/{pool.pk}/runners").json()
    assert listed["count"] == 2
    rows = Runner.objects.order_by("-id")
    assert [one["id"] for one in listed["results"]] == [row.pk for row in rows]
    for one, row in zip(listed["results"], rows, strict=True):
        attempts = LaunchAttempt.objects.filter(runner=row).order_by("number")
        assert [(each["number"], each["reason"]) for each in one["launch_attempts"]] == [
            (each.number, each.reason) for each in attempts
        ]
    reasons = [each["reason"] for one in listed["results"] for each in one["launch_attempts"]]
    assert reasons.count("the engine is away") == 1
    for credential in (b"frr_", b"token"):
        assert credential not in operator.get(f"instance/runner-sets/{pool.pk}/runners").content


def test_a_parked_set_is_recovered(world, pool, operator):
    address = f"instance/runner-sets/{pool.pk}"
    error_of(operator.post(f"{address}/recover"), 409, "conflict")
    RunnerSet.objects.update(phase="outdated", parked_at=timezone.now())
    shown = operator.post(f"{address}/recover", {"version": pool.version}).json()
    assert (shown["phase"], shown["parked_at"], shown["spec_revision"]) == ("running", None, 2)
    assert Event.objects.filter(kind="runner_set_recovered", actor_name="operator").count() == 1


def test_a_deletion_waits_for_busy_runners_unless_it_is_forced(world, pool, operator):
    world.busy()
    address = f"instance/runner-sets/{pool.pk}"
    assert operator("DELETE", address).json()["busy"] == 1
    world.scale()
    assert Job.objects.get().state == "running"
    forced = operator("DELETE", f"{address}?force=true")
    assert forced.status_code == 202
    assert Job.objects.get().conclusion == "failure"
    world.look(2)
    error_of(operator.get(address), 404, "not_found")
    assert not RunnerSet.objects.exists()


@pytest.mark.parametrize("query", ["force=maybe", "version=x", "version=-1"])
def test_a_wrong_word_in_a_deletion_deletes_nothing(pool, operator, query):
    error_of(operator("DELETE", f"instance/runner-sets/{pool.pk}?{query}"), 400, "invalid")
    assert RunnerSet.objects.get().phase == "running"


def test_lists_come_in_pages_with_as_many_queries_for_many_as_for_one(world, operator):
    def make(*names):
        for name in names:
            fields = {"name": name, "labels": ["linux"], "repositories": [world.playground.repository]}
            save_runner_set(runner_set_id=None, fields=fields, version=None, actor=world.playground.operator)

    make("a")
    operator.get("instance/runner-sets")  # which notes that the token was used
    with CaptureQueriesContext(connection) as few:
        operator.get("instance/runner-sets")
    make(*(f"b-{number}" for number in range(9)))
    with CaptureQueriesContext(connection) as many:
        page = operator.get("instance/runner-sets?per_page=10").json()
    assert len(many) == len(few)
    assert (page["count"], len(page["results"]), page["next"]) == (10, 10, None)
    second = operator.get("instance/runner-sets?per_page=4&page=3").json()
    assert [one["name"] for one in second["results"]] == ["b-7", "b-8"]

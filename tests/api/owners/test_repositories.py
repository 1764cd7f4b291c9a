"""Are repositories made, listed, changed and deleted, row and folder together?"""

import pytest

from ci.models import Run, Variable
from forge.models import Member, Repository
from tests.api.calls import error_of


def test_a_new_repository_can_be_pushed_to(alice):
    answer = alice.post("repositories", {"name": "tools", "description": "Mine", "default_branch": "trunk"})
    assert answer.status_code == 201
    shown = answer.json()
    assert (shown["owner"], shown["name"], shown["private"], shown["default_branch"]) == (
        "alice",
        "tools",
        True,
        "trunk",
    )
    assert shown["clone_url"].endswith("/alice/tools.git")
    repository = Repository.objects.get()
    assert (repository.path / "HEAD").read_text().strip() == "ref: refs/heads/trunk"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "../up"}, "name"),
        ({"name": "x.git"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "tools", "private": "perhaps"}, "private"),
        ({"name": "tools", "description": "x" * 351}, "description"),
        ({"name": "tools", "default_branch": "-option"}, "default_branch"),
        ({"name": "tools", "default_branch": "a..b"}, "default_branch"),
    ],
)
def test_it_names_the_field_that_is_wrong(alice, body, field):
    error = error_of(alice.post("repositories", body), 400, "invalid")
    assert list(error["errors"]) == [field]
    assert not Repository.objects.exists()


def test_a_name_is_used_once_an_owner(alice, bob, repository):
    error = error_of(alice.post("repositories", {"name": "Widgets"}), 400, "invalid")
    assert list(error["errors"]) == ["name"]
    assert bob.post("repositories", {"name": "widgets"}).status_code == 201


def test_only_what_is_given_changes(alice, repository):
    answer = alice("PATCH", "repositories/alice/widgets", {"private": False, "name": "gadgets"})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["name"], shown["private"], shown["description"]) == ("gadgets", False, "")
    assert alice.get("repositories/alice/gadgets").status_code == 200


def test_the_default_branch_must_exist(playground, alice, repository):
    playground.push({"a": "1"})
    error = error_of(alice("PATCH", "repositories/alice/widgets", {"default_branch": "no"}), 400, "invalid")
    assert list(error["errors"]) == ["default_branch"]
    playground.push({"a": "2"}, branch="dev")
    assert alice("PATCH", "repositories/alice/widgets", {"default_branch": "dev"}).json()["default_branch"] == "dev"


def test_a_change_that_fails_half_way_changes_nothing(alice, repository):
    error_of(alice("PATCH", "repositories/alice/widgets", {"name": "new", "default_branch": "a..b"}), 400, "invalid")
    assert alice.get("repositories/alice/widgets").status_code == 200


def test_a_deleted_repository_is_gone(alice, repository):
    folder = repository.path
    answer = alice("DELETE", "repositories/alice/widgets")
    assert (answer.status_code, answer.content) == (204, b"")
    assert not folder.exists()
    error_of(alice.get("repositories/alice/widgets"), 404, "not_found")


def test_lists_come_in_pages(playground, alice):
    Repository.objects.bulk_create(Repository(owner=playground.alice, name=f"r{n:03}") for n in range(35))
    first = alice.get("repositories").json()
    assert (first["count"], len(first["results"]), first["previous"]) == (35, 30, None)
    assert "page=2" in first["next"]
    second = alice.get("repositories?page=2").json()
    assert [row["name"] for row in second["results"]] == [f"r{n:03}" for n in range(30, 35)]
    assert len(alice.get("repositories?per_page=5").json()["results"]) == 5
    assert len(alice.get("repositories?per_page=1000").json()["results"]) == 35
    for page in ("0", "-1", "3", "x", "9" * 50, "%00"):
        error_of(alice.get(f"repositories?page={page}"), 404, "not_found")


def test_members_are_added_changed_and_removed(playground, alice, mallory, repository):
    playground.mallory  # noqa: B018 - the person must exist
    answer = alice("PUT", "repositories/alice/widgets/members/Mallory", {"role": "read"})
    assert (answer.status_code, answer.json()["user"], answer.json()["role"]) == (200, "mallory", "read")
    assert mallory.get("repositories/alice/widgets").status_code == 200
    assert alice("PUT", "repositories/alice/widgets/members/mallory", {"role": "admin"}).json()["role"] == "admin"
    assert mallory.get("repositories/alice/widgets/members").json()["count"] == 3
    assert alice("DELETE", "repositories/alice/widgets/members/mallory").status_code == 204
    error_of(mallory.get("repositories/alice/widgets"), 404, "not_found")
    error_of(alice("DELETE", "repositories/alice/widgets/members/mallory"), 404, "not_found")


@pytest.mark.parametrize(
    ("person", "body", "status", "code"),
    [
        ("nobody", {"role": "read"}, 404, "not_found"),
        ("bob", {"role": "emperor"}, 400, "invalid"),
        ("bob", {}, 400, "invalid"),
        ("alice", {"role": "read"}, 400, "invalid"),
    ],
)
def test_what_is_no_membership_is_refused(alice, repository, person, body, status, code):
    before = list(Member.objects.values())
    error_of(alice("PUT", f"repositories/alice/widgets/members/{person}", body), status, code)
    assert list(Member.objects.values()) == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "repositories"),
        ("PATCH", "repositories/alice/widgets"),
        ("POST", "repositories/alice/widgets/dispatches"),
        ("PUT", "repositories/alice/widgets/variables/NAME"),
    ],
)
def test_a_huge_body_is_refused_and_changes_nothing(alice, repository, method, path):
    error_of(alice(method, path, {"name": "x" * (2 * 1024 * 1024)}), 413, "too_large")
    assert list(Repository.objects.values_list("name", flat=True)) == ["widgets"]
    assert not Variable.objects.exists() and not Run.objects.exists()

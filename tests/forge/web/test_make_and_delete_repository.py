"""Can people make, change and delete their repositories, and nobody else?"""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from forge.models import Repository


@pytest.fixture
def home_folder(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"


def test_it_makes_a_repository_with_its_folder(home_folder, alice, signed_in):
    answer = signed_in("alice").post("/new/", {"name": "fresh", "description": "New", "private": "on"})
    assert answer["Location"] == "/alice/fresh/"
    made = Repository.objects.get(owner=alice)
    assert (made.name, made.description, made.private) == ("fresh", "New", True)
    assert (made.path / "HEAD").exists()


def test_an_unticked_box_makes_it_public(home_folder, alice, signed_in):
    signed_in("alice").post("/new/", {"name": "fresh"})
    assert not Repository.objects.get().private


@pytest.mark.parametrize("name", ["", "a b", "../up", ".git", "x.git", "a/b", "a" * 101, "<b>", "a\0b"])
def test_a_name_that_cannot_be_used_is_refused(home_folder, alice, signed_in, name):
    answer = signed_in("alice").post("/new/", {"name": name})
    assert answer.status_code == 422
    assert not Repository.objects.exists()


def test_a_name_that_is_taken_is_refused(repository, signed_in):
    answer = signed_in("alice").post("/new/", {"name": "DEMO"})
    assert answer.status_code == 422
    assert "already has a repository named DEMO" in answer.content.decode()


@pytest.mark.parametrize("owner", ["admin", "API", "settings", "new"])
def test_an_owner_whose_pages_could_not_be_reached_is_refused(home_folder, db, signed_in, owner):
    User.objects.create_user(owner)
    answer = signed_in(owner).post("/new/", {"name": "fresh"})
    assert answer.status_code == 422
    assert "cannot own repositories" in answer.content.decode()
    assert not Repository.objects.exists()


def test_somebody_who_is_not_signed_in_is_sent_to_do_so(db, signed_in):
    assert signed_in("").get("/new/")["Location"] == "/login/?next=/new/"
    assert signed_in("").post("/new/", {"name": "x"})["Location"] == "/login/?next=/new/"


def test_it_saves_description_visibility_and_default_branch(worktree, signed_in):
    worktree.commit({"a": "1"})
    worktree.push("HEAD:refs/heads/main", "HEAD:refs/heads/next")
    answer = signed_in("dave").post("/alice/demo/settings/", {"description": "Other", "default_branch": "next"})
    assert answer.status_code == 302
    changed = Repository.objects.get()
    assert (changed.description, changed.private, changed.default_branch) == ("Other", False, "next")
    assert (changed.path / "HEAD").read_text().strip() == "ref: refs/heads/next"


def test_a_default_branch_that_is_not_there_changes_nothing(worktree, signed_in):
    worktree.commit({"a": "1"})
    worktree.push()
    answer = signed_in("alice").post("/alice/demo/settings/", {"description": "x", "default_branch": "nothing"})
    assert answer.status_code == 422
    assert "There is no branch nothing" in answer.content.decode()
    unchanged = Repository.objects.get()
    assert (unchanged.description, unchanged.private) == ("Shows <things>", True)


def test_settings_of_an_empty_repository_can_be_saved(repository, signed_in):
    assert signed_in("alice").post("/alice/demo/settings/", {"description": "x", "private": "on"}).status_code == 302
    assert Repository.objects.get().default_branch == "main"


@pytest.mark.parametrize(("name", "status"), [("bob", 403), ("carol", 403), ("mallory", 404), ("", 404)])
@pytest.mark.parametrize("address", ["/alice/demo/settings/", "/alice/demo/settings/delete/"])
def test_others_change_and_delete_nothing(repository, signed_in, name, status, address):
    answer = signed_in(name).post(address, {"description": "hacked", "confirm": "alice/demo"})
    assert answer.status_code == status
    assert Repository.objects.get().description == "Shows <things>"


def test_it_is_deleted_when_its_name_is_typed(repository, signed_in):
    folder = repository.path
    assert signed_in("alice").post("/alice/demo/settings/delete/", {"confirm": "alice/demo"})["Location"] == "/"
    assert not Repository.objects.exists()
    assert not folder.exists()


@pytest.mark.parametrize("typed", ["", "demo", "alice/dem", "ALICE/DEMO"])
def test_it_stays_when_something_else_is_typed(repository, signed_in, typed):
    assert signed_in("alice").post("/alice/demo/settings/delete/", {"confirm": typed}).status_code == 422
    assert Repository.objects.exists()


def test_deleting_takes_a_post(repository, signed_in):
    assert signed_in("alice").get("/alice/demo/settings/delete/").status_code == 405


@pytest.mark.parametrize(
    "address",
    ["/new/", "/alice/demo/settings/", "/alice/demo/settings/delete/", "/alice/demo/settings/members/",
     "/settings/tokens/", "/settings/tokens/1/revoke/", "/alice/demo/settings/members/1/role/",
     "/alice/demo/settings/members/1/remove/", "/logout/"],
)  # fmt: skip
def test_no_form_works_without_its_csrf_token(repository, address):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="alice"), "django.contrib.auth.backends.ModelBackend")
    assert strict.post(address, {"name": "x", "confirm": "alice/demo"}).status_code == 403
    assert Repository.objects.count() == 1

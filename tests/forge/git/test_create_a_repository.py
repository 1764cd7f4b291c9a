from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from forge.git import bare
from forge.git.program import run
from forge.models import Repository
from forge.repositories import (
    create_repository,
    delete_repository,
    rename_repository,
    set_default_branch,
)


def folders():
    return sorted(path.name for path in (Path(settings.DATA_DIR) / "git").glob("*"))


def test_it_makes_a_bare_folder_whose_head_is_the_default_branch(alice):
    repository = create_repository(owner=alice, name="widget", default_branch="trunk")
    assert run(repository.path, ["symbolic-ref", "HEAD"]) == b"refs/heads/trunk\n"
    assert run(repository.path, ["rev-parse", "--is-bare-repository"]) == b"true\n"


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a b", "x.git", "a..b", "x" * 101, "a\n", "../up"])
def test_it_refuses_a_name_that_no_address_can_hold_and_leaves_nothing(alice, name):
    before = folders()
    with pytest.raises(ValidationError) as caught:
        create_repository(owner=alice, name=name)
    assert "name" in caught.value.message_dict
    assert folders() == before and not Repository.objects.exists()


@pytest.mark.parametrize("username", ["admin", "Settings", "..", "favicon.ico"])
def test_an_owner_whose_address_leads_elsewhere_gets_no_repository(alice, username):
    alice.username = username
    alice.save()
    before = folders()
    with pytest.raises(ValidationError, match="that name is an address of this site"):
        create_repository(owner=alice, name="widget")
    assert folders() == before and not Repository.objects.exists()


@pytest.mark.parametrize("branch", ["", "-x", "a..b", "HEAD", "a b", "x.lock", "/a"])
def test_it_refuses_a_default_branch_that_cannot_be_one(alice, branch):
    with pytest.raises(ValidationError) as caught:
        create_repository(owner=alice, name="widget", default_branch=branch)
    assert "default_branch" in caught.value.message_dict


def test_it_refuses_a_taken_name_whatever_its_case_and_leaves_nothing(repository, alice):
    before = folders()
    with pytest.raises(ValidationError, match="already has a repository named Widget"):
        create_repository(owner=alice, name="Widget")
    assert folders() == before


def test_a_renamed_repository_keeps_its_content(filled):
    path = filled.path
    rename_repository(repository=filled, name="gadget")
    found = Repository.objects.get(name="gadget")
    assert found.path == path and bare.resolve(found, "main")


def test_it_refuses_to_rename_to_a_taken_name(repository, alice):
    create_repository(owner=alice, name="gadget")
    with pytest.raises(ValidationError, match="already has"):
        rename_repository(repository=repository, name="Gadget")
    assert repository.name == "widget" and Repository.objects.filter(name="widget").exists()


def test_a_deleted_repository_leaves_no_folder(filled):
    path = filled.path
    delete_repository(repository=filled)
    assert not path.exists() and not Repository.objects.exists()
    assert not [name for name in folders() if name.startswith("deleted-")]


def test_the_default_branch_moves_only_to_a_branch_that_exists(filled, work):
    with pytest.raises(ValidationError, match="There is no branch next"):
        set_default_branch(repository=filled, branch="next")
    work.git("push", "-q", str(filled.path), "main:next")
    set_default_branch(repository=filled, branch="next")
    assert Repository.objects.get(pk=filled.pk).default_branch == "next"
    assert run(filled.path, ["symbolic-ref", "HEAD"]) == b"refs/heads/next\n"


def test_a_creation_that_is_rolled_back_outside_can_be_repeated(alice):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        create_repository(owner=alice, name="widget")
        raise ZeroDivisionError
    assert not Repository.objects.exists()
    repository = create_repository(owner=alice, name="widget")
    assert bare.is_empty(repository)

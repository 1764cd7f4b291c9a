"""Do repositories that the operator makes and deletes come and go with their folders?"""

import pytest

from forge.models import Repository

ADD = "/admin/forge/repository/add/"


@pytest.fixture(autouse=True)
def _own_folder(settings, tmp_path):
    settings.DATA_DIR = tmp_path


def _members(page):
    form = page.context["inline_admin_formsets"][0].formset.management_form
    return {form.add_prefix(name): form[name].value() for name in form.fields}


def _fields(playground, **fields):
    return {"owner": str(playground.alice.pk), "name": "made", "default_branch": "main", "private": "on", **fields}


def test_it_is_made_with_its_folder(playground, operator):
    assert operator.post(ADD, _fields(playground)).status_code == 302
    made = Repository.objects.get()
    assert (str(made), made.private) == ("alice/made", True)
    assert (made.path / "HEAD").exists()


@pytest.mark.parametrize(
    "wrong", [{"name": "a b"}, {"name": "x.git"}, {"default_branch": "-x"}, {"default_branch": "a..b"}, {"owner": "0"}]
)
def test_wrong_input_makes_nothing(playground, operator, wrong):
    assert "errornote" in operator.post(ADD, _fields(playground, **wrong)).content.decode()
    assert not Repository.objects.exists()


def test_a_name_that_is_taken_makes_nothing(playground, operator):
    operator.post(ADD, _fields(playground))
    answer = operator.post(ADD, _fields(playground, name="MADE"), follow=True)
    assert answer.context["adminform"].form.errors == {
        "name": [f"{playground.alice} already has a repository named MADE."]
    }
    assert Repository.objects.count() == 1


def test_it_is_changed_with_its_folder(playground, operator):
    playground.commit({"a": "1"})
    playground.commit({"a": "2"}, branch="next")
    repository = playground.repository
    page = operator.opened(repository)
    address = f"/admin/forge/repository/{repository.pk}/change/"
    fields = {**_members(page), "name": "renamed", "default_branch": "next", "description": "New"}
    rows = page.context["inline_admin_formsets"][0].formset
    for number, form in enumerate(rows.initial_forms):
        fields |= {f"members-{number}-{name}": form[name].value() for name in ("id", "repository", "user", "role")}
    assert operator.post(address, {**fields, "default_branch": "gone"}).status_code == 200
    assert operator.post(address, fields).status_code == 302
    repository.refresh_from_db()
    assert (str(repository), repository.default_branch, repository.private) == ("alice/renamed", "next", False)
    assert (repository.path / "HEAD").read_text().strip() == "ref: refs/heads/next"


def test_deleting_one_or_several_takes_the_folders_too(playground, operator):
    first, second = playground.repository, playground.make_repository(name="second")
    assert first.path.exists()
    operator.post(f"/admin/forge/repository/{first.pk}/delete/", {"post": "yes"})
    assert not first.path.exists()
    operator.post(
        "/admin/forge/repository/",
        {"action": "delete_selected", "_selected_action": [str(second.pk)], "post": "yes"},
    )
    assert not second.path.exists()
    assert not Repository.objects.exists()

"""Can admins of a repository say who else may use it?"""

import pytest
from django.contrib.auth.models import User

from forge.models import Member

ADDRESS = "/alice/demo/settings/members/"


def _roles():
    return dict(Member.objects.values_list("user__username", "role"))


def test_the_list_shows_members_and_roles(repository, signed_in):
    page = signed_in("dave").get(ADDRESS).content.decode()
    for name in ("bob", "carol", "dave"):
        assert f'aria-label="Role of {name}"' in page
    assert "Owner: alice" in page


def test_it_adds_a_member(repository, signed_in):
    assert signed_in("dave").post(ADDRESS, {"username": "Mallory", "role": "write"}).status_code == 302
    assert _roles()["mallory"] == "write"


@pytest.mark.parametrize(
    ("username", "role", "said"),
    [
        ("nobody", "read", "There is no active account named nobody."),
        ("alice", "read", "owns this repository"),
        ("bob", "admin", "is a member already"),
        ("", "read", "This field is required."),
        ("mallory", "owner", "not one of the available choices"),
        ("gone", "read", "There is no active account named gone."),
    ],
)
def test_it_says_why_somebody_cannot_be_added(repository, signed_in, username, role, said):
    User.objects.create_user("gone", is_active=False)
    before = _roles()
    answer = signed_in("alice").post(ADDRESS, {"username": username, "role": role})
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert _roles() == before


def test_it_changes_a_role(repository, signed_in):
    member = Member.objects.get(user__username="carol")
    assert signed_in("alice").post(f"{ADDRESS}{member.pk}/role/", {"role": "write"}).status_code == 302
    assert _roles()["carol"] == "write"


def test_an_unknown_role_changes_nothing(repository, signed_in):
    member = Member.objects.get(user__username="carol")
    answer = signed_in("alice").post(f"{ADDRESS}{member.pk}/role/", {"role": "god"}, follow=True)
    assert "Nothing was changed" in answer.content.decode()
    assert _roles()["carol"] == "read"


def test_it_removes_a_member_who_then_sees_nothing(repository, signed_in):
    bob = signed_in("bob")
    assert bob.get("/alice/demo/").status_code == 200
    member = Member.objects.get(user__username="bob")
    assert signed_in("alice").post(f"{ADDRESS}{member.pk}/remove/").status_code == 302
    assert bob.get("/alice/demo/").status_code == 404


def test_an_admin_who_leaves_ends_on_the_start_page(repository, signed_in):
    member = Member.objects.get(user__username="dave")
    assert signed_in("dave").post(f"{ADDRESS}{member.pk}/remove/")["Location"] == "/"


@pytest.mark.parametrize(("name", "status"), [("bob", 403), ("carol", 403), ("mallory", 404), ("", 404)])
def test_others_change_no_member(repository, signed_in, name, status):
    member = Member.objects.get(user__username="bob")
    before = _roles()
    client = signed_in(name)
    assert client.post(ADDRESS, {"username": "mallory", "role": "admin"}).status_code == status
    assert client.post(f"{ADDRESS}{member.pk}/role/", {"role": "admin"}).status_code == status
    assert client.post(f"{ADDRESS}{member.pk}/remove/").status_code == status
    assert _roles() == before


def test_members_of_another_repository_are_out_of_reach(repository, signed_in):
    mallory = User.objects.get(username="mallory")
    other = mallory.repositories.create(name="other")
    member = Member.objects.get(user__username="bob")
    assert signed_in("mallory").post(f"/mallory/{other.name}/settings/members/{member.pk}/remove/").status_code == 404
    assert _roles()["bob"] == "write"

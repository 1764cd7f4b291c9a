"""Do the start page and an owner's page list what one may see, and nothing else?"""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from forge.models import Repository


@pytest.fixture
def several(repository):
    Repository.objects.create(owner=repository.owner, name="open", private=False, description="A public one")
    Repository.objects.create(owner=repository.owner, name="closed", private=True)
    return repository


def _listed(client, address="/", **parameters):
    page = client.get(address, parameters)
    assert page.status_code == 200
    return {str(found) for found in page.context["page_obj"]}


def test_strangers_see_public_repositories_only(several, signed_in):
    assert _listed(signed_in("")) == {"alice/open"}
    assert _listed(signed_in("mallory"), show="all") == {"alice/open"}
    assert _listed(signed_in("mallory"), "/alice/") == {"alice/open"}


def test_members_see_their_own_first_and_everything_on_request(several, signed_in):
    assert _listed(signed_in("carol")) == {"alice/demo"}
    assert _listed(signed_in("carol"), show="all") == {"alice/demo", "alice/open"}
    assert _listed(signed_in("alice")) == {"alice/demo", "alice/open", "alice/closed"}
    assert _listed(signed_in("carol"), "/alice/") == {"alice/demo", "alice/open"}


def test_it_searches_owner_name_and_description(several, signed_in):
    assert _listed(signed_in("alice"), q="things") == {"alice/demo"}
    assert _listed(signed_in("alice"), q="alice/clo") == {"alice/closed"}
    assert _listed(signed_in("alice"), q="PUBLIC open") == {"alice/open"}
    assert _listed(signed_in("alice"), q="\0%_") == set()


def test_empty_lists_say_what_to_do(db, signed_in):
    User.objects.create_user("erin")
    assert "You have no repositories yet" in signed_in("erin").get("/").content.decode()
    assert "There are no public repositories" in signed_in("").get("/").content.decode()
    assert "Nothing found for “&lt;b&gt;”" in signed_in("").get("/", {"q": "<b>"}).content.decode()
    assert "no repositories that you can see" in signed_in("").get("/erin/").content.decode()


def test_an_unknown_owner_is_not_found(db, signed_in):
    assert signed_in("").get("/nobody/").status_code == 404


def test_many_repositories_come_by_page_with_the_same_queries(several, signed_in):
    client = signed_in("alice")
    with CaptureQueriesContext(connection) as few:
        client.get("/")
    Repository.objects.bulk_create(
        Repository(owner=several.owner, name=f"r{number}", private=True) for number in range(100)
    )
    with CaptureQueriesContext(connection) as many:
        page = client.get("/")
    assert len(page.context["page_obj"].object_list) == 30
    assert len(many) == len(few)
    assert "page=2" in page.content.decode()

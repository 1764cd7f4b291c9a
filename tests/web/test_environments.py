"""Who makes and deletes environments, and are their secrets and variables apart from the repository's own?"""

from typing import Any

import pytest
from django.test import Client

from ci.lifecycle.environments import create_environment
from ci.lifecycle.settings_values import set_secret, set_variable
from ci.models import Environment, Scope, Secret, Variable
from tests.playground import Playground

PAGE = "/alice/widgets/settings/environments/"


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


@pytest.fixture
def production(playground: Playground) -> Environment:
    return create_environment(repository=playground.repository, name="production", actor=playground.alice)


def test_one_is_created_and_leads_to_its_secrets(alice: Client, playground: Playground) -> None:
    assert playground.repository
    response = alice.post(PAGE, {"name": " blue/green "}, follow=True)
    made = Environment.objects.get()
    assert made.name == "blue/green"
    assert response.redirect_chain[-1][0] == f"{PAGE}{made.pk}/secrets/"
    assert "Secrets of blue/green of alice/widgets" in response.content.decode()


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "This field is required."), ("PRODUCTION", "There is an environment"), ("x" * 256, "at most 255")],
)
def test_a_refused_name_says_why(alice: Client, production: Environment, name: str, said: str) -> None:
    response = alice.post(PAGE, {"name": name})
    assert response.status_code == 422
    assert said in response.content.decode()
    assert Environment.objects.count() == 1


def test_the_list_counts_what_each_has(alice: Client, playground: Playground, production: Environment) -> None:
    create_environment(repository=playground.repository, name="empty", actor=playground.alice)
    scope = Scope(repository=playground.repository, environment=production)
    for name in ("A", "B"):
        set_secret(scope=scope, name=name, value="x", actor=playground.alice)
    set_variable(scope=scope, name="C", value="x", actor=playground.alice)
    set_secret(scope=Scope(repository=playground.repository), name="OWN", value="x", actor=playground.alice)
    text = " ".join(text_of(alice, PAGE).split())
    assert '>2<span class="visually-hidden"> secrets of production' in text
    assert '>1<span class="visually-hidden"> variables of production' in text
    assert '>0<span class="visually-hidden"> secrets of empty' in text


@pytest.mark.parametrize(("kind", "model"), [("secrets", Secret), ("variables", Variable)])
def test_its_values_are_apart_from_the_repositorys(
    alice: Client, playground: Playground, production: Environment, kind: str, model: Any
) -> None:
    own, theirs = f"/alice/widgets/settings/{kind}/", f"{PAGE}{production.pk}/{kind}/"
    alice.post(own, {"action": "set", "name": "WIDE", "value": "wide-value"})
    alice.post(theirs, {"action": "set", "name": "NARROW", "value": "narrow-value"}, follow=True)
    assert "NARROW" not in text_of(alice, own)
    assert "WIDE" not in text_of(alice, theirs)
    assert "NARROW" in text_of(alice, theirs)
    row = model.objects.get(name="NARROW")
    assert row.scope == Scope(repository=playground.repository, environment=production)
    assert "There is no WIDE" in alice.post(theirs, {"action": "delete", "name": "WIDE"}, follow=True).content.decode()
    alice.post(theirs, {"action": "delete", "name": "NARROW"})
    assert [row.name for row in model.objects.all()] == ["WIDE"]


def test_deleting_asks_first_and_takes_its_values_along(
    alice: Client, playground: Playground, production: Environment
) -> None:
    scope = Scope(repository=playground.repository, environment=production)
    set_secret(scope=scope, name="A", value="x", actor=playground.alice)
    set_secret(scope=Scope(repository=playground.repository), name="A", value="x", actor=playground.alice)
    text = text_of(alice, f"{PAGE}{production.pk}/delete/")
    assert "Its 1 secret and 0 variables go with it." in text
    assert Environment.objects.exists()
    said = alice.post(f"{PAGE}{production.pk}/delete/", follow=True).content.decode()
    assert "The environment production is deleted." in said
    assert not Environment.objects.exists()
    assert [row.environment for row in Secret.objects.all()] == [None]


@pytest.mark.parametrize("more", ["", "{id}/secrets/", "{id}/variables/", "{id}/delete/"])
def test_who_may(playground: Playground, browser: Any, production: Environment, more: str) -> None:
    address = PAGE + more.format(id=production.pk)
    given = {"action": "set", "name": "A", "value": "b"}
    for person, status in ((playground.bob, 403), (playground.carol, 403), (playground.mallory, 404), (None, 404)):
        assert browser(person).get(address).status_code == status
        assert browser(person).post(address, given).status_code == status
    assert Environment.objects.count() == 1
    assert not Secret.objects.exists()
    assert not Variable.objects.exists()


@pytest.mark.parametrize("more", ["secrets/", "variables/", "delete/"])
def test_one_of_another_repository_is_not_found(
    alice: Client, playground: Playground, production: Environment, more: str
) -> None:
    playground.make_repository(name="other")
    for environment_id in (production.pk, 10**30):
        address = f"/alice/other/settings/environments/{environment_id}/{more}"
        assert alice.get(address).status_code == 404
        assert alice.post(address, {"action": "set", "name": "A", "value": "b"}).status_code == 404
    assert Environment.objects.count() == 1


def test_the_list_costs_a_fixed_number_of_queries(
    alice: Client, playground: Playground, django_assert_num_queries: Any
) -> None:
    for number in range(40):
        create_environment(repository=playground.repository, name=f"e{number}", actor=playground.alice)
    with django_assert_num_queries(5):  # session, user, repository, count, environments
        assert text_of(alice, PAGE).count("Delete<span") == 40

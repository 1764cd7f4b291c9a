"""Do environments come and go by the API, and are their secrets and variables apart from the repository's?"""

import pytest

from ci.lifecycle.environments import create_environment
from ci.models import Environment, Scope, Secret, Variable
from tests.api.calls import error_of

BASE = "repositories/alice/widgets/environments"
CALLS = [
    ("GET", BASE, None),
    ("POST", BASE, {"name": "staging"}),
    ("GET", f"{BASE}/production", None),
    ("DELETE", f"{BASE}/production", None),
    ("GET", f"{BASE}/production/secrets", None),
    ("PUT", f"{BASE}/production/secrets/KEY", {"value": "x"}),
    ("DELETE", f"{BASE}/production/secrets/KEY", None),
    ("GET", f"{BASE}/production/variables", None),
    ("PUT", f"{BASE}/production/variables/KEY", {"value": "x"}),
    ("DELETE", f"{BASE}/production/variables/KEY", None),
]


@pytest.fixture
def production(playground):
    return create_environment(repository=playground.repository, name="production", actor=playground.alice)


@pytest.mark.parametrize("name", ["production", "blue/green", "a b", "Höhe"])
def test_one_is_created_listed_shown_and_deleted(repository, alice, name):
    made = alice.post(BASE, {"name": name})
    assert made.status_code == 201
    assert made.json()["name"] == name
    assert [row["name"] for row in alice.get(BASE).json()["results"]] == [name]
    address = f"{BASE}/{name.upper().replace('/', '%2F')}"
    assert alice.get(address).json() == made.json()
    assert alice("DELETE", address).status_code == 204
    error_of(alice.get(address), 404, "not_found")


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "x" * 256}, {"name": "a\nb"}, {"name": "PRODUCTION"}])
def test_a_name_that_will_not_do_is_refused(production, alice, body):
    error = error_of(alice.post(BASE, body), 400, "invalid")
    assert list(error["errors"]) == ["name"]
    assert Environment.objects.count() == 1


@pytest.mark.parametrize(("kind", "model"), [("secrets", Secret), ("variables", Variable)])
def test_its_values_are_apart_from_the_repositorys(repository, production, alice, kind, model):
    own, theirs = f"repositories/alice/widgets/{kind}", f"{BASE}/production/{kind}"
    assert alice("PUT", f"{own}/WIDE", {"value": "wide-value"}).status_code == 200
    assert alice("PUT", f"{theirs}/NARROW", {"value": "narrow-value"}).status_code == 200
    assert [row["name"] for row in alice.get(own).json()["results"]] == ["WIDE"]
    assert [row["name"] for row in alice.get(theirs).json()["results"]] == ["NARROW"]
    assert model.objects.get(name="NARROW").scope == Scope(repository=repository, environment=production)
    error_of(alice("DELETE", f"{own}/NARROW"), 404, "not_found")
    assert alice("DELETE", f"{theirs}/NARROW").status_code == 204
    assert [row.name for row in model.objects.all()] == ["WIDE"]


def test_a_secret_of_one_is_never_shown(production, alice):
    answers = [
        alice("PUT", f"{BASE}/production/secrets/KEY", {"value": "hidden-value"}),
        alice.get(f"{BASE}/production/secrets"),
    ]
    assert all(answer.status_code == 200 and b"hidden-value" not in answer.content for answer in answers)


@pytest.mark.parametrize(("method", "address", "body"), CALLS, ids=[f"{m} {a}" for m, a, _ in CALLS])
def test_only_an_administrator_may(production, alice, bob, carol, mallory, visitor, method, address, body):
    error_of(mallory(method, address, body), 404, "not_found")
    error_of(visitor(method, address, body), 401, "unauthenticated")
    for person in (bob, carol):
        error_of(person(method, address, body), 403, "not_allowed")
    assert Environment.objects.count() == 1
    assert not Secret.objects.exists()
    # Nothing is set yet: there is no KEY to delete.
    expected = 404 if method == "DELETE" and address.endswith("KEY") else None
    assert alice(method, address, body).status_code in ((expected,) if expected else (200, 201, 204))


@pytest.mark.parametrize(("method", "address", "body"), CALLS[2:], ids=[f"{m} {a}" for m, a, _ in CALLS[2:]])
def test_one_of_another_repository_is_not_found(playground, production, alice, method, address, body):
    playground.make_repository(name="other")
    error_of(alice(method, address.replace("widgets", "other"), body), 404, "not_found")
    assert Environment.objects.count() == 1


@pytest.mark.parametrize("kind", ["secrets", "variables"])
def test_what_the_instance_has_is_the_operators(alice, operator, kind):
    for method, address in (("GET", f"instance/{kind}"), ("PUT", f"instance/{kind}/KEY")):
        error_of(alice(method, address, {"value": "x"}), 403, "not_allowed")
        assert operator(method, address, {"value": "x"}).status_code == 200

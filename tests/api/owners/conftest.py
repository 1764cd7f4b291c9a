"""How does each person call the owners' API?"""

import pytest

from forge.access_tokens import create_access_token
from tests.api.calls import call


class Person:
    """Calls as one person, by a personal access token; None is a visitor."""

    def __init__(self, user=None):
        self.token = create_access_token(user=user, name="test")[1] if user is not None else None

    def __call__(self, method, path, body=None):
        return call(method, f"/api/v1/{path}", token=self.token, body=body)

    def get(self, path):
        return self("GET", path)

    def post(self, path, body=None):
        return self("POST", path, {} if body is None else body)


@pytest.fixture
def alice(playground):
    return Person(playground.alice)


@pytest.fixture
def bob(playground):
    return Person(playground.bob)


@pytest.fixture
def carol(playground):
    return Person(playground.carol)


@pytest.fixture
def mallory(playground):
    return Person(playground.mallory)


@pytest.fixture
def operator(playground):
    return Person(playground.operator)


@pytest.fixture
def visitor(db):
    return Person()


@pytest.fixture
def repository(playground):
    return playground.repository

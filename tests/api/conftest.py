"""Which runner and job do the tests of the runner API have?"""

import pytest

from ci.lifecycle import registration
from ci.models import Scope
from tests.playground import Assigned


@pytest.fixture
def registration_token(playground):
    _, token = registration.create_registration_token(scope=Scope(), created_by=playground.operator)
    return token


@pytest.fixture
def runner(playground):
    return playground.runner()


@pytest.fixture
def runner_token(playground, runner):
    return playground.runner_token


@pytest.fixture
def assigned(playground, runner_token, runner) -> Assigned:
    """A job that the runner was given and has not acknowledged."""
    playground.run()
    return playground.assigned(runner)


@pytest.fixture
def running(assigned) -> Assigned:
    return assigned.begin()

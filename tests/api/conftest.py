"""Which runner, job and server process do the API tests have?"""

import pytest

from ci.lifecycle import registration
from ci.models import Scope
from tests.api.server import Server
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


@pytest.fixture(scope="session")
def servers(django_db_setup, tmp_path_factory):
    """The server that the tests share, in a list: those that end it leave an ended one."""
    shared = []
    yield shared
    for server in shared:
        server.kill()


@pytest.fixture
def server(committing_playground, servers, tmp_path_factory):
    if not servers or servers[-1].is_ending or servers[-1].process.poll() is not None:
        # Without sweeps: whoever waits for a job gets it because he was woken, or not within the test's patience.
        log = tmp_path_factory.mktemp("server") / "log"
        servers.append(Server(log, FORGE_SWEEP_SECONDS="3600").__enter__())
    before = len(servers[-1].log)
    yield servers[-1]
    said = servers[-1].log[before:]
    assert "Traceback" not in said, said


@pytest.fixture
def world(committing_playground):
    committing_playground.repository  # noqa: B018 - made before the clock runs
    return committing_playground

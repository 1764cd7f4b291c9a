"""Which server and which clients do the tests of protocols have?"""

import pytest

from ci.models import Artifact, Blob, CacheEntry
from ci.storage import blobs
from tests.api.server import Server
from tests.interop import npm_clients
from tests.interop.npm_clients import NpmClient

# GitHub's clients of artifacts talk to its own hosts, and to those below localhost.
HOST = "forge.localhost"


@pytest.fixture(scope="session")
def npm_folder():
    return npm_clients.install()


@pytest.fixture(scope="module")
def forge(django_db_setup, django_db_blocker, tmp_path_factory):
    """A server process whose own address is below localhost, without the processes beside it."""
    with django_db_blocker.unblock():
        started = Server(tmp_path_factory.mktemp("forge") / "log", host=HOST)
    with started as server:
        yield server
    assert "Traceback" not in server.log, server.log


@pytest.fixture(scope="module")
def npm_client(forge, npm_folder, tmp_path_factory):
    """Starts a client by its name in tests/interop/npm/package.json, once a module."""
    clients: dict[str, NpmClient] = {}

    def client(package: str) -> NpmClient:
        if package not in clients:
            environment = {"GITHUB_SERVER_URL": forge.public_url, "GITHUB_API_URL": f"{forge.public_url}/api/v1"}
            folder = tmp_path_factory.mktemp(package)
            clients[package] = NpmClient(package, installed=npm_folder, folder=folder, environment=environment)
        return clients[package]

    yield client
    for started in clients.values():
        started.__exit__()


@pytest.fixture
def world(committing_playground):
    """Where the server process sees what is done; the bytes that were stored go with the test."""
    yield committing_playground
    Artifact.objects.all().delete()
    CacheEntry.objects.all().delete()
    for blob in Blob.objects.all():
        blobs.discard(blob)

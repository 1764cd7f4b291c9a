"""What do the tests of git stand on? People, a repository, and a work tree that pushes to its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import MD5PasswordHasher

from forge.access_tokens import create_access_token
from forge.models import Member, Repository
from forge.repositories import create_repository
from tests.forge.git.live import LiveForge
from tests.forge.git.worktree import WorkTree

PASSWORD = "correct horse: battery@staple"


@pytest.fixture
def person(db):
    def person(name: str):
        # Hashed the fast way, which only the server under test accepts.
        return get_user_model().objects.create(username=name, password=MD5PasswordHasher().encode(PASSWORD, "salt"))

    return person


@pytest.fixture
def alice(person):
    return person("alice")


@pytest.fixture
def member(person, repository):
    def member(name: str, role: str):
        found = person(name)
        Member.objects.create(repository=repository, user=found, role=role)
        return found

    return member


@pytest.fixture
def repository(alice) -> Repository:
    return create_repository(owner=alice, name="widget")


@pytest.fixture
def work(tmp_path: Path) -> WorkTree:
    return WorkTree(tmp_path / "work").start()


@pytest.fixture
def filled(repository, work):
    """The repository with one commit on main, pushed straight into its folder."""
    work.commit({"README.md": "# Widget\n", "src/a.py": "print(1)\n"}, "First")
    work.git("push", "-q", str(repository.path), "main")
    return repository


@pytest.fixture
def forges(transactional_db, tmp_path: Path):
    """Starts servers, and ends them with the test."""
    started: list[LiveForge] = []

    def start(**variables: str) -> LiveForge:
        started.append(LiveForge(tmp_path, **variables))
        return started[-1].start()

    yield start
    for forge in started:
        forge.stop()


@pytest.fixture(scope="session")
def shared_forge(django_db_setup, django_db_blocker, tmp_path_factory):
    """One server for all tests that do nothing to it: it keeps nothing that a test could leave behind."""
    with django_db_blocker.unblock():
        forge = LiveForge(tmp_path_factory.mktemp("server")).start()
    yield forge
    forge.stop()


@pytest.fixture
def live_forge(transactional_db, shared_forge) -> LiveForge:
    return shared_forge


@pytest.fixture
def remote(live_forge, repository) -> str:
    """The repository's address with alice's password in it."""
    return live_forge.address("alice/widget.git", "alice", PASSWORD)


@pytest.fixture
def token(alice) -> str:
    return create_access_token(user=alice, name="test")[1]

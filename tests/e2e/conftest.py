"""One product for all end-to-end tests of a session: started by its command, used from outside only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.e2e.people import Person
from tests.e2e.product import Product
from tests.e2e.projects import Project

NewProject = Callable[..., Project]


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    data = tmp_path_factory.mktemp("e2e") / "data"
    # Other sources of actions would be looked for in the network; nobody wants to wait for a lost runner a minute long.
    started = Product(data, "--runners", "3", "--demo", FORGE_ACTIONS_SOURCES="", FORGE_HEARTBEAT_SECONDS="30")
    try:
        started.wait_until_printed("Watch it:")
        yield started
    finally:
        status = started.stop()
    assert status == 0, started.printed


@pytest.fixture(scope="session")
def admin(product: Product) -> Person:
    return Person(product, *product.first_account)


@pytest.fixture(scope="session")
def alice(admin: Person) -> Person:
    return admin.create_person("alice")


@pytest.fixture(scope="session")
def mallory(admin: Person) -> Person:
    """A stranger to everything of the others."""
    return admin.create_person("mallory")


@pytest.fixture(scope="session")
def new_project(alice: Person, tmp_path_factory: pytest.TempPathFactory) -> NewProject:
    """Alice's next repository."""
    numbers = count(1)

    def make(name: str | None = None, *, private: bool = True, folder: Path | None = None) -> Project:
        chosen = name or f"project-{next(numbers)}"
        return Project.create(alice, chosen, folder or tmp_path_factory.mktemp(chosen), private=private)

    return make

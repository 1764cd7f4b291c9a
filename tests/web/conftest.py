"""Whose browser asks?"""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.playground import Playground

Browse = Callable[[User | None], Client]


@pytest.fixture
def browser() -> Browse:
    """A browser in which that person is signed in; for None, nobody."""

    def of(person: User | None) -> Client:
        client = Client(enforce_csrf_checks=False)
        if person is not None:
            client.force_login(person)
        return client

    return of


@pytest.fixture
def alice(playground: Playground, browser: Browse) -> Client:
    return browser(playground.alice)

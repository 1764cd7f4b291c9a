"""What do the tests of runner sets share?"""

import pytest

from tests.playground import Playground
from tests.scaling.world import World


@pytest.fixture
def world(playground: Playground) -> World:
    return World(playground)


@pytest.fixture
def committing_world(committing_playground: Playground) -> World:
    """For tests whose connections or processes must see each other's commits."""
    return World(committing_playground)

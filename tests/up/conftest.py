"""What do the tests of starting share?"""

import pytest

from tests.ports import reserve_port


@pytest.fixture
def free_port():
    return reserve_port()

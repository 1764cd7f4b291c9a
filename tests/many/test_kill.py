"""Do the tests of killing a part pass where there is a second of each? The very same ones."""

import pytest

from tests.e2e import test_kill
from tests.e2e.projects import Project
from tests.e2e.test_kill import project
from tests.many.conftest import Pair

__all__ = ["project"]


@pytest.mark.parametrize("victim", ["a web worker", "all of qcluster", "the database"])
def test_the_run_succeeds_with_each_line_once_and_in_order(product: Pair, project: Project, victim: str) -> None:
    test_kill.test_the_run_succeeds_with_each_line_once_and_in_order(product, project, victim)

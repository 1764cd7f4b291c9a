"""Do the tests of killing a part pass where there is a second of each? The very same ones."""

from pathlib import Path

import pytest

from tests.e2e import test_kill
from tests.e2e.projects import Project
from tests.e2e.test_kill import gate, project
from tests.many.conftest import Pair

__all__ = ["gate", "project"]


@pytest.mark.parametrize("victim", ["a web worker", "all of qcluster", "the database"])
def test_the_run_succeeds_with_each_line_once_and_in_order(
    product: Pair, project: Project, gate: Path, victim: str
) -> None:
    test_kill.test_the_run_succeeds_with_each_line_once_and_in_order(product, project, gate, victim)

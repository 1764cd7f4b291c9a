"""Does each row of the table still name a guard that is in the code? Else a whole run would stop at once."""

from __future__ import annotations

import pytest

from tests.mutation.__main__ import ROOT
from tests.mutation.guard import Guard
from tests.mutation.guards import GUARDS


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_the_guard_is_in_the_code_once_and_its_tests_are_there(guard: Guard) -> None:
    assert (ROOT / guard.path).read_text().count(guard.old) == 1, f"{guard.path}: {guard.old!r}"
    for test in guard.tests:
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text() if (ROOT / path).is_file() else None
        assert (ROOT / path).exists() and (not name or f"def {name.split('[')[0]}(" in str(text)), test

"""Two jobs, two runners, an owner, the watch and a runner set: every order of their calls, to the last state.

The bound is the world, not the depth: a run may be run again and a job be queued again any number of times, since how
often it was makes no state another. A larger world: `python -m tests.races.explore --bound 1` (see there).
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.races.explored_worlds import Small, explore
from tests.races.exploring import Found, never_ending

BOUNDS = (
    Small("one after the other"),
    Small("one after the other", single_jobs=True),
    Small("one after the other", single_jobs=True, removal=True),
    Small("pair", single_jobs=True, removal=True),
)


def _say(capsys: pytest.CaptureFixture[str]) -> Callable[[Found], None]:
    """Now and then, how far it has come: a large world takes long."""

    def say(found: Found) -> None:
        if found.states % 500 == 0:
            with capsys.disabled():
                print(f"\n{found.states} states, {found.transitions} transitions", end="", flush=True)

    return say


@pytest.mark.django_db
def test_every_interleaving_keeps_the_invariants(capsys: pytest.CaptureFixture[str]) -> None:
    found = explore(BOUNDS[int(os.environ.get("FORGE_EXPLORE", "0"))], say=_say(capsys))
    with capsys.disabled():
        print(f"\n{found}")
    assert found.left == 0, "the search did not come to its end"
    # A search that finds little has lost its moves, or merges states that are different.
    assert found.states > 100
    assert found.transitions > 20 * found.states
    # No run hangs: whatever the owner did, runners and the watch alone bring it to its end.
    assert not never_ending(found, ("runner", "watch"))

"""Does a commit message ask for no run?"""

import pytest

from ci.workflow.commit import skips_ci


@pytest.mark.parametrize("mark", ["[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "[SKIP CI]"])
def test_a_mark_anywhere_skips(mark: str) -> None:
    assert skips_ci(f"Fix a word\n\nNothing to test {mark} here")


@pytest.mark.parametrize("trailer", ["skip-checks: true", "skip-checks:true", "Skip-Checks: true"])
def test_a_trailer_skips(trailer: str) -> None:
    assert skips_ci(f"Fix a word\n\n\n{trailer}\n")
    assert skips_ci(f"Fix a word\r\n\r\nSigned-off-by: M\r\n{trailer}")


@pytest.mark.parametrize("message", ["", "skip ci", "[skip-ci]", "skip-checks: true", "a\n\nskip-checks: false"])
def test_anything_else_does_not(message: str) -> None:
    assert not skips_ci(message)

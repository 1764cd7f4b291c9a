"""Where are the published conformance cases, and how many of each file hold?"""

from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"
Score = Callable[[str, int, int], None]
SCORES = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SCORES] = {}


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of the published cases; tests that need it are skipped where it is absent."""
    if not FOLDER.is_dir():
        pytest.skip("published conformance cases are not here")
    return FOLDER


@pytest.fixture(scope="session")
def score(pytestconfig: pytest.Config) -> Score:
    """Notes how many cases of a file hold; the summary at the end of the tests shows it."""

    def note(name: str, right: int, total: int) -> None:
        pytestconfig.stash[SCORES][name] = f"{right} of {total} ({100 * right / max(total, 1):.2f} %)"

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    scores = config.stash.get(SCORES, {})
    if scores:
        terminalreporter.section("conformance")
        for name, text in sorted(scores.items()):
            terminalreporter.write_line(f"{name:40} {text}")

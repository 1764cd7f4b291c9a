"""Where are the published conformance cases?"""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of the published cases; tests that need it are skipped where it is absent."""
    if not FOLDER.is_dir():
        pytest.skip("published conformance cases are not here")
    return FOLDER

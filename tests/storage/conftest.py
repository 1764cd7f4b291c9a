"""Which job do the log tests write for?"""

import pytest
from django.core.files.storage import default_storage

from tests.storage.rows import make_job


@pytest.fixture
def blobs(settings, tmp_path):
    """A storage of the test's own; gives its folder."""
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": tmp_path}},
    }
    assert default_storage.path("x") == str(tmp_path / "x")
    return tmp_path


@pytest.fixture
def job_id(db, blobs) -> int:
    return make_job().pk

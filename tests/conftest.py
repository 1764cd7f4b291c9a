"""What does every test stand on? One PostgreSQL and one data folder a session, gone afterwards."""

import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

import django
import pytest
from django.conf import settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from forge.postgres import FORGETFUL, EmbeddedPostgres, socket_folder

# Settings read these when pytest-django loads them, which comes after this file: that is why the settings module is
# named here and not in pyproject.toml. The workers of pytest-xdist inherit all of it from their controller.
_IS_CONTROLLER = "PYTEST_XDIST_WORKER" not in os.environ
_OWN_SERVER = _IS_CONTROLLER and "DATABASE_URL" not in os.environ

if _IS_CONTROLLER:
    _DATA = Path(tempfile.mkdtemp(prefix="forge-tests-"))
    _DATA.chmod(0o711)  # as root, the server's user passes through it
    os.environ["FORGE_DATA"] = str(_DATA)
    if _OWN_SERVER:
        # Where the server will listen is known before it runs: tests without a database never start it.
        _SOCKETS = quote(str(socket_folder(_DATA / "postgres")))
        os.environ["DATABASE_URL"] = f"postgres://forge@/{_SOCKETS}/forge"
        _SERVER = EmbeddedPostgres(_DATA, settings=FORGETFUL)
else:
    # Each worker has a database of its own, whose repositories count from 1: so must their folders.
    _DATA = Path(os.environ["FORGE_DATA"]) / os.environ["PYTEST_XDIST_WORKER"]
    _DATA.mkdir(exist_ok=True)
    os.environ["FORGE_DATA"] = str(_DATA)
(_DATA / "static").mkdir(exist_ok=True)  # the web server warns where it is missing
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "forge.settings")
django.setup()  # now: the conftest files of the rooms import models
# A slow hash protects people's passwords; here it would take most of the tests' time.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *settings.PASSWORD_HASHERS]

# The same cases every time and on every machine, however slow. `--hypothesis-profile=search` looks for new ones.
hypothesis_settings.register_profile(
    "steady", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("steady")

from tests.playground import Playground  # noqa: E402 (it imports models too)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """A worker that inherited it would load the settings before this file gives it a data folder of its own."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


def pytest_configure(config: pytest.Config) -> None:
    if _OWN_SERVER and getattr(config.option, "numprocesses", None):
        _SERVER.start()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Start the server before the first test that wants a database (a hook of pytest-django's)."""
    if _OWN_SERVER and _SERVER.process is None:
        _SERVER.start()


def pytest_sessionstart(session: pytest.Session) -> None:
    assert Path(settings.DATA_DIR) == _DATA, "the settings were loaded before this file could say where the data lies"


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_SERVER:
        _SERVER.stop()
    if _IS_CONTROLLER:
        shutil.rmtree(_DATA, ignore_errors=True)


@pytest.fixture
def playground(db: None) -> Playground:
    return Playground()


@pytest.fixture
def committing_playground(transactional_db: None) -> Playground:
    """The same world, for tests whose connections or processes must see each other's commits."""
    return Playground()

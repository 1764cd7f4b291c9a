"""Does `manage.py up --demo --exit` push a sample repository and end as its run ends?"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.urls import resolve

from ci.management.accounts import FIRST_NAME

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "data"


def _demo(data, port):
    ours = ("FORGE_", "DATABASE_URL", "DJANGO_", "PYTEST_")
    return subprocess.run(
        [sys.executable, "manage.py", "up", "--data", data, "--port", str(port), "--runners", "2", "--demo", "--exit"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith(ours)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def test_the_first_demo_ends_with_a_successful_run(data, free_port):
    done = _demo(data, free_port)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Watch it: http://127.0.0.1:{free_port}/operator/demo/actions/runs/1/" in done.stdout
    jobs = {"Lint", "Test (english)", "Test (french)", "Test (spanish)", "Package", "Announce"}
    assert {line.strip()[2:] for line in done.stdout.splitlines() if line.startswith("  ✓")} == jobs
    assert "The demo's run ended: success." in done.stdout


def test_the_repository_of_the_demo_has_pages_of_its_own():
    """A first account whose name were that of another page would hide them."""
    assert resolve(f"/{FIRST_NAME}/demo/").url_name == "repository"
    assert resolve(f"/{FIRST_NAME}/demo/actions/runs/1/").url_name == "run"


def test_another_demo_on_the_same_data_and_another_port_pushes_another_commit(data, free_port):
    done = _demo(data, free_port)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Watch it: http://127.0.0.1:{free_port}/operator/demo/actions/runs/2/" in done.stdout
    log = subprocess.run(["git", "log", "--format=%s", "main"], cwd=data / "git/1.git", capture_output=True, text=True)
    assert log.stdout.splitlines() == ["Note another visit", "Greet people in three languages"]


def test_a_demo_whose_run_fails_ends_with_status_1(data, free_port, tmp_path):
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@localhost"]
    subprocess.run([*git, "clone", "--quiet", data / "git/1.git", tmp_path / "demo"], check=True)
    (tmp_path / "demo/greetings/french.txt").write_text("Bonjour !\n")
    subprocess.run(
        [*git, "commit", "--quiet", "--all", "--message", "Forget the name"], cwd=tmp_path / "demo", check=True
    )
    subprocess.run([*git, "push", "--quiet"], cwd=tmp_path / "demo", check=True)
    done = _demo(data, free_port)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "✗ Test (french)" in done.stdout
    assert "The demo's run ended: failure." in done.stdout

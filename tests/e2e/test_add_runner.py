"""Can somebody add a machine of their own, and take it away again without harm to a job?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import NewProject
from tests.e2e.product import ROOT, eventually
from tests.e2e.projects import Project

WORKFLOW = """
name: Own
on: workflow_dispatch
jobs:
  build:
    runs-on: [self-hosted, own]
    steps:
      - run: |
          test "$RUNNER_NAME" = added
          echo "job begins"
          for i in 1 2 3 4 5 6 7 8; do sleep 0.5; done
          echo "job ends"
      - if: always()
        run: echo "always runs"
"""
STOP_SECONDS = 40


@pytest.fixture
def project(new_project: NewProject) -> Project:
    made = new_project()
    made.start({".github/workflows/own.yml": WORKFLOW})
    return made


def bundled(*words: str, **variables: str) -> subprocess.Popen[str]:
    """The bundled runner's command, without anything of this session's settings."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "ci.runner", *words],
        cwd=ROOT,
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def added(project: Project, tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """A registered runner of this repository alone; call it with `run` or `once`."""
    token = project.owner.call("POST", f"{project.api}/registration-tokens", {})["token"]
    config = tmp_path / "runner.json"
    words = ("--url", project.owner.product.url, "--name", "added", "--labels", "self-hosted,own")
    done = bundled("register", *words, "--config", str(config), FORGE_REGISTRATION_TOKEN=token)
    said, _ = done.communicate(timeout=90)
    assert done.returncode == 0, said
    assert "Runner added is registered" in said and token not in said
    started: list[subprocess.Popen[str]] = []

    def start(command: str) -> subprocess.Popen[str]:
        started.append(bundled(command, "--config", str(config), "--work", str(tmp_path / "work")))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=STOP_SECONDS)


def test_a_job_says_that_nobody_can_take_it(project: Project) -> None:
    run = project.dispatch("own.yml")
    assert "label own" in run.job("build")["waits_for"]
    page = project.owner.pages.get(f"{run.path}jobs/{run.jobs()['build']['id']}/").text
    assert "label own" in page
    run.cancel()
    run.wait("cancelled", seconds=10)


def test_an_added_runner_takes_one_job_and_ends(
    project: Project, added: Callable[[str], subprocess.Popen[str]]
) -> None:
    first, second = project.dispatch("own.yml"), project.dispatch("own.yml")
    process = added("once")
    first.wait()
    said, _ = process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 0, said
    assert second.jobs()["build"]["state"] == "queued"
    second.cancel()


def test_a_runner_asked_to_end_finishes_the_job_in_hand(
    project: Project, added: Callable[[str], subprocess.Popen[str]]
) -> None:
    first, second = project.dispatch("own.yml"), project.dispatch("own.yml")
    process = added("run")
    first.wait_for_line("build", "\njob begins")
    process.send_signal(signal.SIGTERM)
    first.wait()
    said, _ = process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 0, said
    assert "job ends" in first.log("build").splitlines()
    assert second.jobs()["build"]["state"] == "queued"
    second.cancel()


def test_a_runner_asked_twice_ends_its_job_at_once_and_says_so(
    project: Project, added: Callable[[str], subprocess.Popen[str]]
) -> None:
    run = project.dispatch("own.yml")
    process = added("run")
    run.wait_for_line("build", "\njob begins")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=STOP_SECONDS)
    assert process.returncode == 0, said
    job = eventually(lambda: run.jobs()["build"]["conclusion"], seconds=10, what="the job's end", otherwise=run.story)
    assert job == "cancelled", run.story()
    assert "told twice to stop" in run.log("build")
    assert "job ends" not in run.log("build").splitlines()

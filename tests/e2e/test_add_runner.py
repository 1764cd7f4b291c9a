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
on:
  workflow_dispatch:
    inputs:
      gate: {type: string, required: true}
jobs:
  build:
    runs-on: [self-hosted, own]
    steps:
      - run: |
          test "$RUNNER_NAME" = added
          echo "job begins"
          while ! test -e '${{ inputs.gate }}'; do sleep 0.1; done
          echo "job ends"
      - if: always()
        run: echo "always runs"
"""
STOP_SECONDS = 120


@pytest.fixture
def project(new_project: NewProject) -> Project:
    made = new_project()
    made.start({".github/workflows/own.yml": WORKFLOW})
    return made


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The job goes on once this is there."""
    return tmp_path / "gate"


class Runner:
    """A process of the bundled runner's command, without anything of this session's settings."""

    def __init__(self, log: Path, *words: str, **variables: str) -> None:
        self._log = log
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ci.runner", *words],
                cwd=ROOT,
                env={**environment, **variables},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def said(self) -> str:
        return self._log.read_text()

    def ask_to_end(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait_until_said(self, text: str) -> None:
        eventually(lambda: text in self.said(), seconds=STOP_SECONDS, what=text, otherwise=self.said)

    def wait(self, seconds: float = STOP_SECONDS) -> None:
        """Until it ended, which must be cleanly."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it still runs after {seconds} s\n{self.said()}") from None
        assert status == 0, self.said()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(STOP_SECONDS)


@pytest.fixture
def added(project: Project, tmp_path: Path) -> Iterator[Callable[[str], Runner]]:
    """A registered runner of this repository alone; call it with `run` or `once`."""
    token = project.owner.call("POST", f"{project.api}/registration-tokens", {})["token"]
    config, log = ("--config", str(tmp_path / "runner.json")), tmp_path / "log"
    words = ("--url", project.owner.product.url, "--name", "added", "--labels", "self-hosted,own")
    registering = Runner(log, "register", *words, *config, FORGE_REGISTRATION_TOKEN=token)
    registering.wait()
    assert "Runner added is registered" in registering.said() and token not in registering.said()
    started: list[Runner] = []

    def start(command: str) -> Runner:
        started.append(Runner(log, command, *config, "--work", str(tmp_path / "work")))
        return started[-1]

    yield start
    for runner in started:
        runner.kill()


def test_a_job_says_that_nobody_can_take_it(project: Project, gate: Path) -> None:
    run = project.dispatch("own.yml", gate=str(gate))
    assert "label own" in run.job("build")["waits_for"]
    page = project.owner.pages.get(f"{run.path}jobs/{run.jobs()['build']['id']}/").text
    assert "label own" in page
    run.cancel()
    run.wait("cancelled")


def test_an_added_runner_takes_one_job_and_ends(project: Project, added: Callable[[str], Runner], gate: Path) -> None:
    gate.touch()
    first, second = (project.dispatch("own.yml", gate=str(gate)) for _ in range(2))
    runner = added("once")
    first.wait()
    runner.wait()
    assert second.jobs()["build"]["state"] == "queued"
    second.cancel()


def test_a_runner_asked_to_end_finishes_the_job_in_hand(
    project: Project, added: Callable[[str], Runner], gate: Path
) -> None:
    first, second = (project.dispatch("own.yml", gate=str(gate)) for _ in range(2))
    runner = added("run")
    first.wait_for_line("build", "\njob begins")
    runner.ask_to_end()
    runner.wait_until_said("will stop after the job in hand")
    gate.touch()
    first.wait()
    runner.wait()
    assert "job ends" in first.log("build").splitlines()
    assert second.jobs()["build"]["state"] == "queued"
    second.cancel()


def test_a_runner_asked_twice_ends_its_job_at_once_and_says_so(
    project: Project, added: Callable[[str], Runner], gate: Path
) -> None:
    run = project.dispatch("own.yml", gate=str(gate))
    runner = added("run")
    run.wait_for_line("build", "\njob begins")
    runner.ask_to_end()
    runner.wait_until_said("will stop after the job in hand")
    runner.ask_to_end()
    runner.wait()
    job = eventually(lambda: run.jobs()["build"]["conclusion"], seconds=120, what="the job's end", otherwise=run.story)
    assert job == "cancelled", run.story()
    assert "told twice to stop" in run.log("build")
    assert "job ends" not in run.log("build").splitlines()

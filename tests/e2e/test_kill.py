"""Does a job's log stay whole, and does its run end right, when a part of the product is killed meanwhile?"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import NewProject
from tests.e2e.people import Person
from tests.e2e.product import Product, children_of, command_of, eventually
from tests.e2e.projects import Project, Run

LINES = 2000
STREAM = f"""
name: Stream
on:
  workflow_dispatch:
    inputs:
      gate: {{type: string, required: true}}
jobs:
  stream:
    runs-on: ubuntu-latest
    steps:
      - run: |
          sleep 3600 & echo "sleeper $!"
          for i in $(seq 1 {LINES}); do
            echo "line $i"
            if test $((i % 20)) = 0; then sleep 0.05; fi
            if test $i = {LINES - 500}; then while ! test -e '${{{{ inputs.gate }}}}'; do sleep 0.1; done; fi
          done
  after:
    needs: stream
    runs-on: ubuntu-latest
    steps:
      - run: echo "after it"
"""
Victim = Callable[[Product], int]


def below(name: str, part: str) -> Victim:
    """A process of that child's own, which it starts again itself."""

    def find(product: Product) -> int:
        def look() -> int | None:
            return next((pid for pid in children_of(product.child(name)) if part in command_of(pid)), None)

        return eventually(look, seconds=120, what=f"a process below {name}")

    return find


def grandchild(name: str) -> Victim:
    return lambda product: children_of(below(name, name)(product))[0]


def child(name: str) -> Victim:
    return lambda product: product.child(name)


VICTIMS = {
    "a web worker": below("uvicorn", "multiprocessing"),
    "all of web": child("uvicorn"),
    "a task worker": grandchild("qcluster"),
    "the guard of the task workers": below("qcluster", "qcluster"),
    "all of qcluster": child("qcluster"),
    "watch": child("manage.py watch"),
    "a database connection": below("postgres", "forge"),
    "the database": child("postgres"),
}


@pytest.fixture(scope="module")
def project(new_project: NewProject) -> Project:
    made = new_project()
    made.start({".github/workflows/stream.yml": STREAM})
    return made


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The job prints its last lines once this is there: it is not over before it is struck, however slow we are."""
    return tmp_path / "gate"


def numbers(run: Run) -> list[int]:
    """Of the lines in the log, in its order."""
    return [int(line.split()[1]) for line in run.log("stream").splitlines() if re.fullmatch(r"line \d+", line)]


@pytest.mark.parametrize("victim", VICTIMS)
def test_the_run_succeeds_with_each_line_once_and_in_order(
    product: Product, project: Project, gate: Path, victim: str
) -> None:
    run = project.dispatch("stream.yml", gate=str(gate))
    run.wait_for_line("stream", "\nline 200\n")
    os.kill(VICTIMS[victim](product), signal.SIGKILL)
    assert len(numbers(run)) < LINES, "the job was over before the kill"
    gate.touch()
    run.wait("success")
    assert numbers(run) == list(range(1, LINES + 1)), run.story()
    assert run.jobs()["after"]["conclusion"] == "success"
    (step,) = [step for step in run.job("stream")["steps"] if step["name"].startswith("Run sleep")]
    lines = run.log("stream").splitlines()[step["first_line"] : step["first_line"] + step["line_count"]]
    assert lines[-1] == f"line {LINES}", "the step claims exactly its own lines"


def test_a_killed_runner_fails_its_job_and_leaves_the_lines_and_no_process(
    product: Product, project: Project, gate: Path
) -> None:
    run = project.dispatch("stream.yml", gate=str(gate))
    log = run.wait_for_line("stream", "\nline 200\n")
    name = run.jobs()["stream"]["runner_name"]
    sleeper = next(int(line.split()[1]) for line in log.splitlines() if line.startswith("sleeper "))
    assert "sleep 3600" in command_of(sleeper)
    os.kill(product.child(f"runners/{name.removeprefix('runner-')}/"), signal.SIGKILL)
    run.wait("failure")
    job = run.jobs()["stream"]
    assert job["conclusion"] == "failure"
    assert f"{name} was lost" in job["end_note"], job
    assert run.jobs()["after"]["conclusion"] == "skipped"
    kept = numbers(run)
    assert kept == list(range(1, len(kept) + 1)) and 200 <= len(kept) < LINES
    eventually(
        lambda: not command_of(sleeper),
        seconds=120,
        what="the restarted runner ended what its killed self left running",
        otherwise=lambda: command_of(sleeper),
    )
    gate.touch()
    again = project.dispatch("stream.yml", gate=str(gate)).wait("success")
    assert numbers(again) == list(range(1, LINES + 1))


def test_a_power_cut_loses_no_line_that_was_shown_and_no_queued_job(tmp_path: Path, gate: Path) -> None:
    settings = {"FORGE_HEARTBEAT_SECONDS": "30", "FORGE_ACTIONS_SOURCES": ""}
    product = Product(tmp_path / "data", "--runners", "1", **settings)
    try:
        product.wait_until_printed("Ctrl-C stops it")
        operator = Person(product, *product.first_account)
        project = Project.create(operator, "streams", tmp_path / "tree")
        project.start({".github/workflows/stream.yml": STREAM})
        running, queued = (project.dispatch("stream.yml", gate=str(gate)) for _ in range(2))
        running.wait_for_line("stream", "\nline 200\n")
        shown = numbers(running)
    finally:
        product.cut_power()
    gate.touch()
    product = Product(tmp_path / "data", "--runners", "1", port=product.port, **settings)
    try:
        product.wait_until_printed("Ctrl-C stops it")
        assert "password:" not in product.printed
        running.wait("failure")
        kept = numbers(running)
        assert kept == list(range(1, len(kept) + 1)) and len(shown) <= len(kept) < LINES
        queued.wait("success")
        assert numbers(queued) == list(range(1, LINES + 1))
        assert project.push("HEAD:refs/heads/afterwards").status == 0
    finally:
        assert product.stop() == 0, product.printed

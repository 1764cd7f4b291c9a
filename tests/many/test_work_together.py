"""Do two of every part work as one? What one is told the other knows at once, and nothing is done twice."""

from __future__ import annotations

import copy
import os
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci.lifecycle.events import DEADLINE_SET
from ci.lifecycle.watch import LEADER_LOCK
from tests.e2e.conftest import NewProject
from tests.e2e.product import command_of, eventually
from tests.e2e.projects import Project, Run
from tests.forge.git.worktree import environment
from tests.many.conftest import Pair, Traveller
from tests.many.machine import Machine

# Told of at once it is milliseconds; whom nobody tells finds out when the waiting call ends, after 15 s or more.
AT_ONCE = 8.0

FILES = {
    ".github/workflows/hello.yml": """
        name: Hello
        on: push
        jobs:
          greet: {runs-on: ubuntu-latest, steps: [{run: 'echo "hello from $RUNNER_NAME"'}]}
    """,
    ".github/workflows/far.yml": """
        name: Far
        on: workflow_dispatch
        jobs:
          work: {runs-on: far, steps: [{run: echo}]}
    """,
    ".github/workflows/slow.yml": """
        name: Slow
        on: {workflow_dispatch: {inputs: {gate: {required: true}}}}
        concurrency: slow
        jobs:
          work:
            runs-on: ubuntu-latest
            steps:
              - run: |
                  echo "it waits"
                  while ! test -e '${{ inputs.gate }}'; do sleep 0.1; done
                  echo "it goes on"
    """,
    ".github/workflows/stream.yml": """
        name: Stream
        on: workflow_dispatch
        jobs:
          stream:
            strategy: {matrix: {n: [1, 2, 3, 4]}}
            runs-on: ubuntu-latest
            steps:
              - run: for i in $(seq 1 400); do echo "line $i"; sleep 0.02; done
    """,
    ".github/workflows/nightly.yml": """
        name: Nightly
        on: {schedule: [{cron: '0 0 1 1 *'}]}
        jobs:
          work: {runs-on: ubuntu-latest, steps: [{run: echo}]}
    """,
}


@pytest.fixture(scope="module")
def project(new_project: NewProject) -> Project:
    made = new_project()
    made.start(FILES)["Hello"].wait()
    return made


@pytest.fixture
def far(project: Project, product: Pair) -> Iterator[Machine]:
    """A runner at the second web, alone with its label."""
    machine = Machine(project, product.second.url, "far")
    yield machine
    for runner in project.owner.call("GET", f"{project.api}/runners")["results"]:
        project.owner.call("DELETE", f"{project.api}/runners/{runner['id']}")


@pytest.fixture
def at_first(project: Project) -> Project:
    """The same repository, of which the first web is told what to do."""
    assert isinstance(project.owner, Traveller)
    found = copy.copy(project)
    found.owner = project.owner.at_first
    return found


def test_a_poll_at_one_web_gets_what_is_started_at_the_other_at_once(at_first: Project, far: Machine) -> None:
    took = []
    for _ in range(7):
        poll = far.poll()
        run = at_first.dispatch("far.yml")
        began = time.monotonic()
        job = poll.result().json()["job"]
        took.append(poll.ended_at - began)
        assert job["run_id"] == run.id
        far.beat(job).result()
        far.complete(job)
        run.wait("success", seconds=10)
    print("seconds from queue to poll:", [round(seconds, 3) for seconds in took])
    assert statistics.median(took) < AT_ONCE


def test_a_cancel_at_one_web_reaches_the_runner_that_waits_at_the_other_at_once(
    at_first: Project, far: Machine
) -> None:
    took = []
    for _ in range(3):
        poll = far.poll()
        run = at_first.dispatch("far.yml")
        job = poll.result().json()["job"]
        far.beat(job).result()
        beat = far.beat(job, wait=50)
        asked = time.monotonic()
        run.cancel()
        assert beat.result().json()["cancel"] == "owner"
        took.append(beat.ended_at - asked)
        far.complete(job)
        run.wait("cancelled", seconds=10)
    print("seconds from cancel to runner:", [round(seconds, 3) for seconds in took])
    assert statistics.median(took) < AT_ONCE


def test_both_webs_show_a_log_while_it_grows_and_a_group_is_one(
    project: Project, at_first: Project, product: Pair, tmp_path: Path
) -> None:
    gates = [tmp_path / f"gate-{number}" for number in range(3)]
    running = at_first.dispatch("slow.yml", gate=str(gates[0]))
    for there in (project, at_first):
        Run(there, running.id).wait_for_line("work", "it waits\n")
    pages = at_first.owner.pages.get(f"{running.path}jobs/{running.jobs()['work']['id']}/").text
    assert "it waits" in pages and "it goes on\n" not in running.log("work")
    older = project.dispatch("slow.yml", gate=str(gates[1]))
    newer = at_first.dispatch("slow.yml", gate=str(gates[2]))
    older.wait("cancelled", seconds=30)
    assert newer.state()["state"] == "waiting"
    for gate in gates:
        gate.touch()
    running.wait("success")
    newer.wait("success")


def test_what_both_plan_is_planned_once(project: Project, product: Pair) -> None:
    """The web that took a push plans it at once, and the task that came with it is executed by either qcluster."""
    branches = [f"refs/heads/at-once/{number}" for number in range(12)]
    remotes = [project.owner.remote(project.name), _at(project, product.second.port)]
    pushes = [_push(project, remotes[number % 2], branch) for number, branch in enumerate(branches)]
    for push in pushes:
        assert push.wait(90) == 0
    eventually(
        lambda: not product.sql("SELECT 1 FROM django_q_ormq"),
        seconds=60,
        what="all tasks are executed",
        otherwise=product.logs,
    )
    runs = [run for run in project.runs() if run["ref"] in branches]
    assert sorted(run["ref"] for run in runs) == sorted(branches)
    for run in runs:
        Run(project, run["id"]).wait()


def _at(project: Project, port: int) -> str:
    return re.sub(r":\d+/", f":{port}/", project.owner.remote(project.name))


def _push(project: Project, remote: str, ref: str) -> subprocess.Popen[bytes]:
    words = ["git", "-C", str(project.tree.folder), "push", "-q", remote, f"HEAD:{ref}"]
    return subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL)


def fire_schedule(project: Project, product: Pair) -> None:
    """Its time has come, and both watches are told."""
    product.sql("UPDATE ci_schedule SET next_at = now()")
    product.sql(f"NOTIFY {DEADLINE_SET}")


def nightly(project: Project) -> list[dict[str, Any]]:
    return [run for run in project.runs() if run["event"] == "schedule"]


def leader(product: Pair) -> int | None:
    """The process number of the watch that leads."""
    found = product.sql(
        "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' "
        "AND granted AND (classid::bigint << 32 | objid::bigint) = %s",
        [LEADER_LOCK],
    )
    return int(found[0][0].removeprefix("forge watch ")) if found else None


def test_a_killed_leader_is_replaced_in_seconds_and_schedules_start_once(project: Project, product: Pair) -> None:
    expected = len(nightly(project))
    for _ in range(3):
        fire_schedule(project, product)
        expected += 1
        eventually(lambda: len(nightly(project)) >= expected, seconds=30, what="the schedule", otherwise=product.logs)  # noqa: B023
        before = eventually(lambda: leader(product), seconds=30, what="a leader")
        assert "watch" in command_of(before)
        os.kill(before, signal.SIGKILL)
        killed = time.monotonic()
        after = eventually(
            lambda: (found := leader(product)) not in (None, before) and found,  # noqa: B023
            seconds=30,
            what="another leader",
            otherwise=product.logs,
        )
        print(f"watch {before} was killed, {after} leads {time.monotonic() - killed:.1f} s later")
        eventually(
            lambda: watches(product) == 2, seconds=60, what="both watches run again", otherwise=lambda: product.printed
        )
    fire_schedule(project, product)
    eventually(lambda: len(nightly(project)) > expected, seconds=30, what="the schedule", otherwise=product.logs)
    assert len(nightly(project)) == expected + 1


def watches(product: Pair) -> int:
    return len({one.child("manage.py watch") for one in (product, product.second)})


def test_runners_of_a_killed_web_end_their_jobs(project: Project, at_first: Project, product: Pair) -> None:
    """A runner knows one address: it waits until its web runs again, and nothing is lost. The others do not notice."""
    run = at_first.dispatch("stream.yml")
    jobs = [f"stream ({number})" for number in range(1, 5)]
    for job in jobs:
        run.wait_for_line(job, "\nline 50\n")
    os.kill(product.second.child("uvicorn"), signal.SIGKILL)
    run.wait("success", seconds=120)
    for job in jobs:
        lines = [line for line in run.log(job).splitlines() if re.fullmatch(r"line \d+", line)]
        assert lines == [f"line {number}" for number in range(1, 401)], job
    eventually(lambda: answers(project), seconds=60, what="the killed web answers again", otherwise=product.second.logs)
    assert [entry["conclusion"] for entry in Run(project, run.id).jobs().values()] == ["success"] * 4


def answers(project: Project) -> bool:
    return bool(project.runs())

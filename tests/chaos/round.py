"""How does one round go? The work begins, everybody is killed, all comes to rest, and every row and line is checked."""

from __future__ import annotations

import html
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.chaos.killer import Killer
from tests.chaos.owner import Owner
from tests.chaos.verdict import Verdict
from tests.chaos.workload import DEPLOYS, IN_LINE, JOBS, LATER_PUSHES, Workload
from tests.e2e.people import Person
from tests.e2e.product import Product, command_of, eventually
from tests.e2e.projects import Project

ROOT = Path(__file__).resolve().parents[2]
LOST_AFTER = 20.0
SETTINGS = {
    "FORGE_ACTIONS_SOURCES": "",
    "FORGE_HEARTBEAT_SECONDS": f"{LOST_AFTER:g}",
    "FORGE_ACKNOWLEDGE_SECONDS": "5",
    "FORGE_CANCEL_GRACE_SECONDS": "30",
    "FORGE_LOG_SEAL_SECONDS": "10",
}
KILLING_SECONDS = 35.0
# A task whose process was killed is given to another one after five minutes.
SETTLE_SECONDS = 420.0
ROWS_SECONDS = 180.0
_ROWS = "import django, sys; django.setup(); from tests.chaos import rows; rows.print_all(sys.argv[1])"


class Broken(AssertionError):
    """A rule was broken; the text tells which, and the whole story."""


class Round:
    """50 jobs on a running product. `run` returns the figures; raises Broken."""

    def __init__(
        self, product: Product, person: Person, seed: int, *, say: Callable[[str], None], restarts: bool = False
    ) -> None:
        self._product, self._seed, self._say = product, seed, say
        self._workload = Workload(seed)
        self._random = random.Random(f"owner {seed}")
        self._folder = tempfile.TemporaryDirectory(prefix="forge-chaos-")
        self._project = Project.create(person, f"chaos-{seed}-{os.urandom(3).hex()}", Path(self._folder.name) / "tree")
        self._owner = Owner(person, self._project)
        pace = self._random.uniform(0.6, 1.6)
        self._killer = Killer(
            product, seed, say=say, lost_after=LOST_AFTER, pace=pace, seconds=KILLING_SECONDS, restarts=restarts
        )

    def run(self) -> Counter[str]:
        self._say(f"seed {self._seed}")
        try:
            return self._run()
        except Exception as error:
            raise Broken(self._story(str(error) or repr(error))) from error
        finally:
            self._killer.stop()
            self._owner.close()
            self._folder.cleanup()

    def _run(self) -> Counter[str]:
        self._project.start(self._workload.texts())
        self._killer.start()
        self._work()
        self._killer.stop()
        found = self._settled()
        problems = [*found["broken"], *self._problems(found)]
        assert not problems, "\n".join(problems)
        return self._figures + self._killer.counts

    def _work(self) -> None:
        """What the owner does while everybody is killed, in the order of its moments."""
        chance, began = self._random, time.monotonic()
        acts: list[tuple[float, Callable[[], object]]] = [
            (chance.uniform(4, 10), lambda: self._owner.cancel(self._run_of("stopped"))),
            (chance.uniform(14, 22), lambda: self._rerun(self._run_of("flaky"))),
        ]
        acts += [(chance.uniform(0, 25), self._dispatch("deploy", number)) for number in range(DEPLOYS)]
        acts += [(chance.uniform(0, 15), self._dispatch("line", number)) for number in range(IN_LINE)]
        acts += [(chance.uniform(0, 28), self._push(number)) for number in range(LATER_PUSHES)]
        for moment, act in sorted(acts, key=lambda one: one[0]):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            act()
        time.sleep(max(0.0, began + KILLING_SECONDS - time.monotonic()))

    def _dispatch(self, file: str, number: int) -> Callable[[], object]:
        return lambda: self._owner.dispatch(f"{file}.yml", f"{file} {number}")

    def _push(self, number: int) -> Callable[[], object]:
        return lambda: self._owner.push(f"later-{number}")

    def _rerun(self, run: int) -> None:
        eventually(
            lambda: self._owner.run(run)["state"] == "ended", seconds=SETTLE_SECONDS, what="flaky has ended", every=0.5
        )
        self._owner.rerun_failed(run)

    def _run_of(self, name: str) -> int:
        return next(run["id"] for run in self._owner.runs() if run["workflow_name"] == name)

    def _settled(self) -> dict[str, Any]:
        """The rows once all jobs have ended, and the tasks that follow from it are done."""
        wanted = 1 + 1 + 6 + DEPLOYS + IN_LINE + LATER_PUSHES - 1

        def at_rest() -> bool:
            runs = self._owner.runs()
            return len(runs) >= wanted and all(run["state"] == "ended" for run in runs)

        eventually(at_rest, seconds=SETTLE_SECONDS, what="all runs have ended", every=0.5)
        return self._rows()

    def _rows(self) -> dict[str, Any]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FORGE_", "DATABASE_URL"))}
        environment = {
            **kept,
            "FORGE_DATA": str(self._product.data),
            "DJANGO_SETTINGS_MODULE": "forge.settings",
            "FORGE_LOG_LEVEL": "ERROR",
        }
        command = [sys.executable, "-c", _ROWS, self._project.name]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=ROWS_SECONDS, check=False
        )
        assert done.returncode == 0, f"the rows cannot be read:\n{done.stderr}"
        return json.loads(done.stdout)

    def _problems(self, found: dict[str, Any]) -> list[str]:
        verdict = Verdict(self._workload, found, self._killer.kills)
        problems = verdict.problems()
        self._figures = verdict.figures
        first = [job for job in found["jobs"] if job["attempt"] == 1]
        if len(first) != JOBS:
            problems.append(f"{len(first)} jobs instead of {JOBS}")
        problems += self._problems_of_pages(found)
        problems += [f"a step's process is left: {pid} {command_of(pid)}" for pid in self._left_processes()]
        return problems

    def _problems_of_pages(self, found: dict[str, Any]) -> list[str]:
        pages = {run["id"]: self._owner.page(run["id"]) for run in found["runs"]}
        attempts = {run["id"]: run["attempt"] for run in found["runs"]}
        other_logs = [job["id"] for job in found["jobs"] if not self._shows_log_of(job)]
        return [
            *(f"the page of run {run} answers {page.status_code}" for run, page in pages.items() if page.is_error),
            *(f"the API shows another log of job {job} than the database has" for job in other_logs),
            *(
                f"the page of run {job['run_id']} does not say {job['end_note']!r}"
                for job in found["jobs"]
                if job["conclusion"] == "failure" and job["attempt"] == attempts[job["run_id"]]
                if html.escape(job["end_note"]) not in pages[job["run_id"]].text
            ),
        ]

    def _shows_log_of(self, job: dict[str, Any]) -> bool:
        """A runner that was only frozen may still send lines of a job that it has lost."""
        shown = self._owner.log(job["id"])
        is_lost = bool(job["events"]) and job["events"][-1]["kind"] == "lost"
        return shown == job["log"] or (is_lost and shown.startswith(job["log"]))

    def _left_processes(self) -> list[int]:
        """Of this product's runners: whoever carries a job's mark, though no job runs."""
        return marked(str(self._product.data / "runners"))

    def _story(self, problem: str) -> str:
        kills = [f"  {kill}" for kill in self._killer.kills]
        return "\n".join([problem, f"seed {self._seed}, kills:", *kills, *self._described()])

    def _described(self) -> Sequence[str]:
        try:
            found = self._rows()
        except (AssertionError, subprocess.SubprocessError, ValueError) as error:
            return [str(error), self._product.logs()]
        lines = [*found["broken"]]
        for run in found["runs"]:
            lines.append(
                f"run {run['id']} {run['title']!r} attempt {run['attempt']}: {run['state']} {run['conclusion']}"
            )
            lines += [line for job in found["jobs"] if job["run_id"] == run["id"] for line in _told(job)]
        return [*lines, self._product.printed[-3000:], self._product.logs()]


def _told(job: dict[str, Any]) -> list[str]:
    head = f"  job {job['id']} {job['name']!r} attempt {job['attempt']}: {job['state']} {job['conclusion']}"
    told = [f"{head} {job['cancel_reason']} {job['end_note']!r} on {job['runner_name']}"]
    return told + [f"    {event['at']:.2f} {event['kind']} {event['detail']}" for event in job["events"]]


def marked(runners: str) -> list[int]:
    """Processes that a runner below this folder started for a job."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"RUNNER_TRACKING_ID=forge_" in environment and f"RUNNER_TEMP={runners}".encode() in environment:
            found.append(int(entry.name))
    return found

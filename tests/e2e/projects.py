"""A repository on the product, its work tree, and the runs that pushes to it start."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.people import Person
from tests.e2e.product import eventually
from tests.forge.git.worktree import WorkTree

RUN_SECONDS = 300.0
_STARTED = re.compile(r"^Workflow (?P<name>.+) #\d+ started: \S+/runs/(?P<id>\d+)/$")


@dataclass(frozen=True)
class Pushed:
    """What the person at the terminal saw."""

    status: int
    lines: list[str]
    stderr: str


class Project:
    """`owner` pushes to it from `tree`."""

    def __init__(self, owner: Person, name: str, folder: Path) -> None:
        self.owner, self.name = owner, f"{owner.name}/{name}"
        self.tree = WorkTree(folder).start()
        self.tree.git("remote", "add", "origin", owner.remote(self.name))

    @classmethod
    def create(cls, owner: Person, name: str, folder: Path, *, private: bool = True) -> Project:
        """A new, empty repository."""
        owner.call("POST", "repositories", {"name": name, "private": private})
        return cls(owner, name, folder)

    @property
    def api(self) -> str:
        return f"repositories/{self.name}"

    def push(self, *words: str) -> Pushed:
        """Push what the words say (default: the branch that is checked out)."""
        return as_seen(self.tree.attempt("push", "origin", *(words or ("HEAD",))))

    def start(self, files: Mapping[str, str | bytes], *words: str, message: str = "Change") -> dict[str, Run]:
        """Commit, push, and the started runs by workflow name."""
        self.tree.commit(files, message)
        pushed = self.push(*words)
        assert pushed.status == 0 and "cannot run" not in pushed.stderr, pushed.stderr
        return {found["name"]: Run(self, int(found["id"])) for line in pushed.lines if (found := _STARTED.match(line))}

    def dispatch(self, file: str, **inputs: Any) -> Run:
        body = {"ref": self.tree.git("branch", "--show-current"), "inputs": inputs}
        return Run(self, self.owner.call("POST", f"{self.api}/workflows/{file}/dispatches", body)["id"])

    def runs(self, **filters: Any) -> list[dict[str, Any]]:
        return self.owner.call("GET", f"{self.api}/runs", per_page=100, **filters)["results"]


def as_seen(done: subprocess.CompletedProcess[str]) -> Pushed:
    said = [line.removeprefix("remote:").strip() for line in done.stderr.splitlines() if line.startswith("remote:")]
    return Pushed(done.returncode, [line for line in said if line], done.stderr)


class Run:
    def __init__(self, project: Project, number: int) -> None:
        self.project, self.id = project, number
        self._call = project.owner.call
        self.api = f"{project.api}/runs/{number}"
        self.path = f"/{project.name}/actions/runs/{number}/"

    def state(self) -> dict[str, Any]:
        return self._call("GET", self.api)

    def jobs(self, **query: Any) -> dict[str, dict[str, Any]]:
        """By name."""
        return {job["name"]: job for job in self._call("GET", f"{self.api}/jobs", per_page=100, **query)["results"]}

    def job(self, name: str) -> dict[str, Any]:
        """One job with its steps."""
        jobs = self.jobs()
        assert name in jobs, f"{name} is none of {list(jobs)}"
        return self._call("GET", f"{self.project.api}/jobs/{jobs[name]['id']}")

    def steps(self, name: str) -> dict[str, str | None]:
        """Conclusion by the step's name."""
        return {step["name"]: step["conclusion"] for step in self.job(name)["steps"]}

    def raw_log(self, name: str, query: str = "") -> bytes:
        return self.project.owner.bytes_of(f"{self.project.api}/jobs/{self.jobs()[name]['id']}/logs{query}")

    def log(self, name: str) -> str:
        return self.raw_log(name).decode()

    def cancel(self, *, force: bool = False) -> None:
        self._call("POST", f"{self.api}/{'force-cancel' if force else 'cancel'}", {})

    def wait(self, conclusion: str = "success", *, seconds: float = RUN_SECONDS) -> Run:
        """Until it ended, which must be as said."""

        def ended() -> dict[str, Any] | None:
            found = self.state()
            return found if found["state"] == "ended" else None

        found = eventually(ended, seconds=seconds, what=f"run {self.id} ended", otherwise=self.story)
        assert found["conclusion"] == conclusion, self.story()
        return self

    def wait_for_line(self, job: str, text: str, *, seconds: float = RUN_SECONDS) -> str:
        """The log of that job, once it holds `text`."""

        def has_it() -> str | None:
            if job not in self.jobs():
                return None
            log = self.log(job)
            return log if text in log else None

        return eventually(has_it, seconds=seconds, what=f"{text!r} in the log of {job}", otherwise=self.story)

    def wait_for_job(self, name: str, state: str, *, seconds: float = RUN_SECONDS) -> dict[str, Any]:
        def there() -> dict[str, Any] | None:
            job = self.jobs().get(name)
            return job if job and job["state"] == state else None

        return eventually(there, seconds=seconds, what=f"{name} is {state}", otherwise=self.story)

    def story(self) -> str:
        """All about the run, for the message of a failed test."""
        run = self.state()
        lines = [f"run {self.id} {run['workflow_name']!r}: {run['state']} {run['conclusion']} {run['problems']}"]
        for name, job in self.jobs().items():
            lines.append(f"  job {name!r}: {job['state']} {job['conclusion']} {job['cancel_reason']} {job['end_note']}")
            detail = self.job(name)
            lines += [f"    {step['number']} {step['name']}: {step['conclusion']}" for step in detail["steps"]]
            if detail["waits_for"]:
                lines.append(f"    waits: {detail['waits_for']}")
            lines += [f"    | {line[:300]}" for line in self.log(name).splitlines()[-60:]]
        return "\n".join([*lines, self.project.owner.product.printed[-1500:]])

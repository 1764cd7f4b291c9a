"""PostgreSQL is killed with all its sessions the moment an answer arrives: what was answered with success is there."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from forge.postgres import EmbeddedPostgres, embedded_database
from tests.e2e.people import Person
from tests.e2e.product import Product, children_of, eventually
from tests.e2e.projects import Project, Run

ROUNDS = 5
TIME = "2026-11-30T12:00:00.000000Z"
FILES = {
    ".github/workflows/own.yml": """
        name: Own
        on: push
        jobs:
          one: {runs-on: own, steps: [{run: echo}]}
          two: {needs: one, runs-on: own, steps: [{run: echo}]}
    """,
}


class Database:
    """A PostgreSQL as the product runs it, to be killed at once and started again."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self.kills = 0

    def aim(self) -> list[int]:
        """All its processes, sessions first: none of them shall live to write what is left."""
        assert self._server.process is not None
        return [*children_of(self._server.process.pid), self._server.process.pid]

    def kill(self, pids: list[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert self._server.process is not None
        self._server.process.wait()
        self.kills += 1
        self._server.start()


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory(prefix="forge-kill-") as folder:
        Path(folder).chmod(0o711)  # as root, the server's user passes through it
        with EmbeddedPostgres(Path(folder, "data")) as server:
            yield Database(server)


@pytest.fixture(scope="module")
def product(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    given = embedded_database(database._server.data_dir)
    address = f"postgres://{given['USER']}@/{quote(given['HOST'])}/{given['NAME']}"
    data = tmp_path_factory.mktemp("kill") / "data"
    started = Product(data, "--runners", "0", FORGE_ACTIONS_SOURCES="", DATABASE_URL=address)
    try:
        started.wait_until_printed("Ctrl-C stops it")
        yield started
    finally:
        status = started.stop()
    assert status == 0, started.printed


@pytest.fixture(scope="module")
def project(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.create(Person(product, *product.first_account), "kept", tmp_path_factory.mktemp("tree"))


class Machine:
    """A runner by protocol alone, which asks until it is answered."""

    def __init__(self, project: Project) -> None:
        self._client = httpx.Client(base_url=f"{project.owner.product.url}/api/runner/v1/", timeout=60, trust_env=False)
        registration = project.owner.call("POST", f"{project.api}/registration-tokens", {})["token"]
        self._token = ""
        self._token = self.call("POST", "runners", {"name": "own", "labels": ["own"]}, registration)["token"]
        self._polls = 0

    def call(self, method: str, path: str, body: Any, token: str | None = None) -> Any:
        def answered() -> httpx.Response | None:
            with contextlib.suppress(httpx.TransportError):
                answer = self._client.request(
                    method, path, json=body, headers={"Authorization": f"Bearer {token or self._token}"}
                )
                return answer if answer.status_code < 500 else None
            return None

        answer = eventually(answered, seconds=90, what=f"an answer to {path}")
        assert answer.is_success, f"{path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def fetch(self) -> dict[str, Any]:
        self._polls += 1
        body = {"poll_id": f"p{self._polls}", "wait": 20}
        return eventually(lambda: self.call("POST", "jobs/fetch", body), seconds=60, what="a job")["job"]


def test_what_was_answered_outlives_the_database(database: Database, project: Project) -> None:
    machine = Machine(project)
    for number in range(ROUNDS):
        files = {**FILES, "round.txt": str(number)}
        project.tree.commit(files, f"Round {number}")
        pids = database.aim()
        pushed = project.push("HEAD:refs/heads/main")
        database.kill(pids)
        assert pushed.status == 0, pushed.stderr
        (run,) = [found for found in project.runs() if found["title"] == f"Round {number}"]
        assert project.tree.git("rev-parse", "HEAD") in project.tree.git("ls-remote", "origin", "refs/heads/main")
        _work(database, machine, Run(project, run["id"]), "one")
        _work(database, machine, Run(project, run["id"]), "two")
        Run(project, run["id"]).wait("success", seconds=30)
    print(f"the database was killed {database.kills} times, right after an answer")
    assert database.kills == ROUNDS * 5


def _work(database: Database, machine: Machine, run: Run, name: str) -> None:
    """A job of the run, whose log and end are each answered just before a kill."""
    job = machine.fetch()
    assert job["name"] == name
    path, token = f"jobs/{job['id']}", job["token"]
    machine.call("POST", f"{path}/heartbeat", {}, token)
    texts = [f"{name} {line}" for line in range(3)]
    pids = database.aim()
    machine.call("POST", f"{path}/log", {"offset": 0, "lines": [[TIME, text] for text in texts]}, token)
    database.kill(pids)
    assert run.log(name).splitlines() == texts
    pids = database.aim()
    machine.call("POST", f"{path}/complete", {"conclusion": "success"}, token)
    database.kill(pids)
    assert run.jobs()[name]["conclusion"] == "success"

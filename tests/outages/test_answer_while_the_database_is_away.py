"""A database that is away: 503 and when to come back, from everything that answers, and all goes on when it is back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from forge.access_tokens import create_access_token
from tests.api.calls import TIME
from tests.api.server import Server
from tests.forge.git.worktree import WorkTree
from tests.outages.conftest import Database
from tests.playground import Assigned, Playground

JOB = "/api/runner/v1/jobs/{id}/"
RUNNER_CALLS: list[tuple[str, str, Any]] = [
    ("POST", "/api/runner/v1/jobs/fetch", {"poll_id": "p"}),
    ("GET", "/api/runner/v1/runners/self", None),
    ("POST", JOB + "heartbeat", {}),
    ("PATCH", JOB + "steps", {"steps": [{"number": 3, "name": "Run", "state": "running"}]}),
    ("POST", JOB + "log", {"offset": 0, "lines": [[TIME, "hello"]]}),
    ("POST", JOB + "complete", {"conclusion": "success"}),
]
PAGES = [
    "/",
    "/login/",
    "/alice/widgets/",
    "/alice/widgets/actions/",
    "/alice/widgets/actions/runs/1/",
    "/settings/tokens/",
    "/admin/",
]


class Scene:
    def __init__(self, playground: Playground, server: Server) -> None:
        self.server = server
        playground.run()
        runner = playground.runner()
        self.assigned: Assigned = playground.assigned(runner).begin()
        self.runner_token = playground.runner_token
        self.access_token = create_access_token(user=playground.alice, name="test")[1]

    def call(self, method: str, path: str, body: Any, *, token: str | None = None) -> httpx.Response:
        chosen = token or (self.assigned.token if "{id}" in path else self.runner_token)
        return httpx.request(
            method,
            self.server.url + path.format(id=self.assigned.id),
            json=body,
            headers={"Authorization": f"Bearer {chosen}"},
            timeout=60,
        )


@pytest.fixture(scope="module")
def own_server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "log") as server:
        yield server


@pytest.fixture
def scene(committing_playground: Playground, own_server: Server) -> Scene:
    return Scene(committing_playground, own_server)


def refused(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text[:500]
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["Cache-Control"].split(",")[0] in ("no-store", "no-cache")


def test_the_runner_api(scene: Scene, database: Database) -> None:
    database.stop()
    for method, path, body in RUNNER_CALLS:
        answer = scene.call(method, path, body)
        refused(answer)
        assert answer.json()["code"] == "unavailable"
    database.start()
    for method, path, body in RUNNER_CALLS:
        assert scene.call(method, path, body).status_code in (200, 204), path
    assert scene.assigned.job.conclusion == "success"


def test_the_owners_api(scene: Scene, database: Database) -> None:
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/api/v1/repositories", None),
        ("POST", f"/api/v1/repositories/alice/widgets/runs/{scene.assigned.job.run_id}/cancel", {}),
    ]
    database.stop()
    for call in calls:
        answer = scene.call(*call, token=scene.access_token)
        refused(answer)
        assert answer.json()["code"] == "unavailable"
    database.start()
    for call in calls:
        assert scene.call(*call, token=scene.access_token).is_success, call
    assert scene.assigned.job.cancel_reason == "owner"


def test_pages(scene: Scene, database: Database) -> None:
    cookies = {"sessionid": "0123456789abcdef0123456789abcdef"}
    database.stop()
    for path in PAGES:
        answer = httpx.get(scene.server.url + path, cookies=cookies, timeout=60)
        refused(answer)
        assert "The database is away" in answer.text, path
    static = httpx.get(scene.server.url + "/static/forge/forge.css", timeout=60)
    assert static.status_code == 200, "the page looks like one of the forge's"
    database.start()
    for path in PAGES:
        assert httpx.get(scene.server.url + path, timeout=60).status_code in (200, 302, 404), path


def test_git(scene: Scene, database: Database, tmp_path: Path) -> None:
    remote = f"http://alice:{scene.access_token}@127.0.0.1:{scene.server.port}/alice/widgets.git"
    tree = WorkTree(tmp_path)
    tree.git("clone", "-q", remote, "clone")
    work = WorkTree(tmp_path / "clone")
    work.commit({"more.txt": "more"})
    database.stop()
    refused(httpx.get(f"{remote}/info/refs", params={"service": "git-upload-pack"}, timeout=60))
    pushed: subprocess.CompletedProcess[str] = work.attempt("push", "origin", "HEAD:more")
    assert pushed.returncode != 0
    assert "503" in pushed.stderr, pushed.stderr
    database.start()
    pushed = work.attempt("push", "origin", "HEAD:more")
    assert pushed.returncode == 0, pushed.stderr

"""What does the owner do meanwhile? Pushes, dispatches, cancels and re-runs, each until it surely happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from tests.e2e.people import Person
from tests.e2e.projects import Project

# An outage of everything: the database recovers, then web starts anew, on a machine that does other things.
OUTAGE_SECONDS = 180.0
CERTAIN = (401, 403, 404)  # of an answer that no repeat will change; a conflict is for the caller to judge

T = TypeVar("T")


class Owner:
    """Acts on one repository through the REST API and git, whatever is killed at that moment."""

    def __init__(self, person: Person, project: Project) -> None:
        self._project = project
        self._calls = httpx.Client(base_url=f"{person.product.url}/api/v1/", timeout=60, trust_env=False)
        self._calls.headers["Authorization"] = f"Bearer {person.token}"
        self._pages = person.pages

    def close(self) -> None:
        self._calls.close()

    def push(self, branch: str) -> str:
        """Push the tree's commit as `branch`; its SHA."""
        sha = self._project.tree.git("rev-parse", "HEAD")

        def attempt() -> bool:
            self._project.push(f"HEAD:refs/heads/{branch}")
            # What counts is what the server holds, not what the client saw of it.
            listed = self._project.tree.attempt("ls-remote", "origin", f"refs/heads/{branch}")
            return listed.returncode == 0 and listed.stdout.startswith(sha)

        _until(attempt, f"pushed {branch}")
        return sha

    def dispatch(self, file: str, mark: str) -> int:
        """Start a workflow whose runs are named by their mark; the run's id."""

        def there() -> int:
            return next((run["id"] for run in self.runs() if run["title"] == mark), 0)

        def attempt() -> int:
            answer = self._post(f"workflows/{file}/dispatches", {"ref": "main", "inputs": {"mark": mark}})
            return answer.json()["id"] if answer is not None and answer.is_success else there()

        return _until(attempt, f"dispatched {mark}")

    def cancel(self, run: int) -> None:
        """A conflict means that it has ended, or that an attempt without an answer had been heard."""
        _until(lambda: self._heard(f"runs/{run}/cancel"), f"cancelled run {run}")

    def rerun_failed(self, run: int) -> None:
        """Start the second attempt of a run that has ended in its first."""

        def attempt() -> bool:
            self._post(f"runs/{run}/rerun-failed", {})
            return self.run(run)["attempt"] == 2

        _until(attempt, f"re-ran run {run}")

    def _heard(self, path: str) -> bool:
        answer = self._post(path, {})
        return answer is not None and (answer.is_success or answer.status_code == 409)

    def _post(self, path: str, body: Any) -> httpx.Response | None:
        """None where nobody knows whether it happened."""
        try:
            answer = self._calls.post(f"{self._project.api}/{path}", json=body)
        except httpx.TransportError:
            return None
        assert answer.status_code not in CERTAIN, f"POST {path}: {answer.status_code} {answer.text[:500]}"
        return answer if answer.status_code < 500 else None

    def get(self, path: str) -> httpx.Response:
        """A read of the API below the repository, repeated through outages."""
        found = self._read(self._calls, f"{self._project.api}/{path}")
        assert found.status_code == 200, f"GET {path}: {found.status_code} {found.text[:500]}"
        return found

    def _read(self, client: httpx.Client, path: str) -> httpx.Response:
        def attempt() -> httpx.Response | None:
            try:
                answer = client.get(path)
            except httpx.TransportError:
                return None
            return answer if answer.status_code < 500 else None

        return _until(attempt, f"read {path}")

    def page(self, run: int) -> httpx.Response:
        """The run's page, as a browser gets it."""
        return self._read(self._pages, f"/{self._project.name}/actions/runs/{run}/")

    def runs(self) -> list[dict[str, Any]]:
        return self.get("runs?per_page=100").json()["results"]

    def run(self, run: int) -> dict[str, Any]:
        return self.get(f"runs/{run}").json()

    def log(self, job: int) -> str:
        return self.get(f"jobs/{job}/logs").content.decode()


def _until(attempt: Callable[[], T | None], what: str) -> T:
    deadline = time.monotonic() + OUTAGE_SECONDS
    while not (found := attempt()):
        assert time.monotonic() < deadline, f"not within {OUTAGE_SECONDS:g} s: {what}"
        time.sleep(0.3)
    return found

"""A runner by protocol alone, at whichever of the two webs: what it is told, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.e2e.projects import Project

WAIT = 50
_ANSWER_SECONDS = 40


class Call:
    """One waiting call on a thread of its own."""

    def __init__(self, send: Callable[[], httpx.Response]) -> None:
        self.answer: httpx.Response | None = None
        self.ended_at = 0.0
        self._thread = threading.Thread(target=self._run, args=(send,))
        self._thread.start()

    def _run(self, send: Callable[[], httpx.Response]) -> None:
        self.answer = send()
        self.ended_at = time.monotonic()

    def result(self) -> httpx.Response:
        self._thread.join(WAIT + _ANSWER_SECONDS)
        assert self.answer is not None, "the call got no answer"
        return self.answer


class Machine:
    """Registered for one repository, with one label of its own."""

    def __init__(self, project: Project, url: str, label: str) -> None:
        self._client = httpx.Client(base_url=f"{url}/api/runner/v1/", timeout=WAIT + _ANSWER_SECONDS, trust_env=False)
        registration = project.owner.call("POST", f"{project.api}/registration-tokens", {})["token"]
        body = {"name": label, "labels": [label]}
        self._token: str = self._post("runners", registration, body).json()["token"]
        self._polls = 0

    def _post(self, path: str, token: str, body: Any) -> httpx.Response:
        answer = self._client.post(path, json=body, headers={"Authorization": f"Bearer {token}"})
        assert answer.is_success, f"{path}: {answer.status_code} {answer.text[:500]}"
        return answer

    def poll(self) -> Call:
        self._polls += 1
        body = {"poll_id": f"poll-{self._polls}", "wait": WAIT}
        return Call(lambda: self._post("jobs/fetch", self._token, body))

    def beat(self, job: dict[str, Any], *, wait: float = 0) -> Call:
        return Call(lambda: self._post(f"jobs/{job['id']}/heartbeat", job["token"], {"wait": wait}))

    def complete(self, job: dict[str, Any]) -> None:
        self._post(f"jobs/{job['id']}/complete", job["token"], {"conclusion": "success"})

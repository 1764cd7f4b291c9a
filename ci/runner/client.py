"""How does the runner speak to the forge, through restarts and faults?"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from ci.runner import VERSION
from ci.runner.clock import skew
from ci.runner.wire import Answer, Wire, WireError

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
MOST_RETRY_AFTER = 30.0
ANSWER_SECONDS = 20.0
PREFIX = "/api/runner/v1/"
TEMPORARY = {408, 425, 429}

Body = dict[str, Any]


class ApiError(Exception):
    """The forge answered with an error that repeating the call will not change."""

    def __init__(self, status: int, code: str, detail: str, body: Body) -> None:
        super().__init__(f"{status} {code}: {detail}" if detail else f"{status} {code}")
        self.status = status
        self.code = code
        self.detail = detail
        self.body = body

    @property
    def job_is_gone(self) -> bool:
        """The job ended, or was taken from us: nothing we say about it counts."""
        return self.status in (401, 404) or (self.status == 409 and self.code == "job_ended")


class GaveUp(Exception):
    """The caller's `stop` said so before an answer came."""


def backoff(attempt: int) -> float:
    """Seconds before the next try: 0.2 s doubling to 5 s, each between half and the whole of it."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, 10)) * random.uniform(0.5, 1.0)


def never() -> bool:
    return False


class Client:
    """The runner API v1 of one forge. Safe to use from several threads."""

    def __init__(self, url: str, *, report: Callable[[str], None] = lambda text: None) -> None:
        self.url = url.rstrip("/")
        self._report = report
        self.ahead = 0.0  # seconds the forge's clock is ahead of ours
        self._wire = Wire(self.url)

    def reconnect(self) -> None:
        """Begin with fresh connections, after a call was broken off half-way."""
        self._wire.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        token: str,
        body: Mapping[str, Any] | None = None,
        wait: float = 0.0,
        stop: Callable[[], bool] = never,
    ) -> tuple[int, Body]:
        """Status and JSON of the answer. `wait`: seconds the server may hold the call open.

        Network faults, 5xx and 429 are tried again until `stop()`. Raises ApiError, GaveUp.
        """
        content = json.dumps(body).encode() if body is not None else None
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"forge-ci-runner/{VERSION}",
        }
        attempt = 0
        while True:
            pause = backoff(attempt)
            try:
                answer = self._wire.call(
                    method, f"{PREFIX}{path}", content=content, headers=headers, seconds=wait + ANSWER_SECONDS
                )
                if answer.status < 500 and answer.status not in TEMPORARY:
                    self.ahead = skew(answer.headers.get("Date"))
                    return _read(answer)
                problem = f"answer {answer.status}"
                pause = _retry_after(answer, pause)
            except WireError as error:
                problem = str(error)
            if attempt == 0 or attempt % 20 == 0:
                self._report(f"{method} {path}: {problem}; trying again")
            attempt += 1
            _pause(pause, stop)

    def close(self) -> None:
        self._wire.close()


def _pause(seconds: float, stop: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while True:
        if stop():
            raise GaveUp
        left = until - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(0.2, left))


def _retry_after(answer: Answer, otherwise: float) -> float:
    try:
        return min(MOST_RETRY_AFTER, max(otherwise, float(answer.headers.get("Retry-After", ""))))
    except ValueError:
        return otherwise


def _read(answer: Answer) -> tuple[int, Body]:
    """Raises ApiError for errors, and for successes that are no JSON object (a proxy's page, a wrong address)."""
    body: Any = {}
    if answer.content:
        try:
            body = json.loads(answer.content)
        except ValueError:
            body = None
    if 200 <= answer.status < 300 and isinstance(body, dict):
        return answer.status, body
    known = body if isinstance(body, dict) else {}
    detail = str(known.get("detail") or known.get("errors") or "")
    if not isinstance(body, dict) or 300 <= answer.status < 400:
        detail = "the answer is not from a forge's runner API; is the address right?"
    raise ApiError(answer.status, str(known.get("code", "error")), detail[:500], known)

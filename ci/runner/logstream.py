"""How do the job's lines and steps reach the forge, in order and at most a second old?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ci.runner.client import ApiError, Client, GaveUp
from ci.runner.control import Control
from ci.runner.spool import Spool, SpoolFull

MOST_STEPS = 1_000  # the forge refuses to number more; the log still shows what they do
BATCH_LINES = 2_000
BATCH_BYTES = 1024 * 1024
# Lines gather this long before a batch leaves: few calls, and well below a second.
GATHER_SECONDS = 0.25


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def bare(step: dict[str, Any]) -> dict[str, Any]:
    """A step's report without what may be long: enough to say that it ended, and how."""
    return {key: value for key, value in step.items() if key not in ("annotations", "summary")}


class LogStream:
    """One job's upload thread. `write` never loses a line while the job is ours; `close` sends the rest."""

    def __init__(
        self,
        client: Client,
        *,
        job_id: int,
        token: str,
        control: Control,
        spool: Path,
        first: int = 0,
        report: Callable[[str], None],
    ) -> None:
        self._client = client
        self._path = f"jobs/{job_id}"
        self._token = token
        self._control = control
        self._spool = Spool(spool, first=first)
        self._report = report
        self._steps: dict[int, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._hurry = threading.Event()
        self._begun = threading.Event()
        self._full = False
        self._give_up_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def end(self) -> int:
        return self._spool.end

    def write(self, text: str) -> None:
        """Add a line, already masked and storable."""
        if self._full or self._control.abandoned:
            return
        try:
            self._spool.append(now(), text, hurry=lambda: self._control.over or self._full)
        except SpoolFull:
            return
        self._wake.set()

    def step(self, state: dict[str, Any]) -> None:
        """Report a step; only its newest state is sent."""
        if state["number"] > MOST_STEPS:
            return
        with self._lock:
            self._steps[state["number"]] = state
        self._wake.set()

    def begin(self, state: dict[str, Any]) -> None:
        """Report that a step of the workflow's own begins; of the job's first one, wait until the forge knows it.

        Only then may its program run. A job whose steps had not begun goes to another runner when this one is lost,
        and what the program does would be done twice. Returns early once the job is over.
        """
        self.step(state)
        if not self._begun.is_set():
            self._hurry.set()
        while not self._begun.wait(0.1):
            if self._control.over or not self._thread.is_alive():
                return

    def close(self, *, patience: float | None = None) -> None:
        """Send what is left. Returns early once the job is abandoned, or after `patience` seconds."""
        if patience is not None:
            self._give_up_at = time.monotonic() + patience
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        while self._thread.is_alive() and not self._stop():
            self._thread.join(0.1)
            if self._control.stopped and self._give_up_at is None:
                self._give_up_at = time.monotonic() + 10.0
        self._thread.join(1.0)
        if not self._thread.is_alive():
            self._spool.close()

    def _stop(self) -> bool:
        late = self._give_up_at is not None and time.monotonic() >= self._give_up_at
        return late or self._control.abandoned is not None

    def _run(self) -> None:
        while not self._stop():
            self._wake.wait(1.0)
            self._hurry.wait(GATHER_SECONDS)
            # Read before the work, so that nothing written meanwhile is forgotten.
            last = self._closing.is_set()
            self._wake.clear()
            self._hurry.clear()
            try:
                self._send_lines()
                self._send_steps()
            except GaveUp:
                return
            except ApiError as error:
                if error.job_is_gone:
                    self._control.abandon(str(error))
                    return
                self._report(f"{self._path}: {error}")
                self._begun.set()  # refused for good: to wait on would be to wait for ever
            if last:
                return

    def _send_lines(self) -> None:
        size = BATCH_BYTES
        while not self._full:
            offset, lines = self._spool.batch(lines=BATCH_LINES, size=size)
            if not lines:
                return
            try:
                answer = self._post(offset, lines)
            except ApiError as error:
                if error.job_is_gone:
                    raise
                if error.status == 413 and error.code != "log_limit" and len(lines) > 1:
                    size //= 2
                    continue
                if not self._mend(error, offset=offset):
                    self._full = True
                    self._report(f"{self._path}: no more log is taken: {error}")
                continue
            self._spool.forget(min(int(answer["next_offset"]), offset + len(lines)))

    def _post(self, offset: int, lines: list[tuple[str, str]]) -> dict[str, Any]:
        body = {"offset": offset, "lines": [list(line) for line in lines]}
        return self._client.call("POST", f"{self._path}/log", token=self._token, body=body, stop=self._stop)[1]

    def _mend(self, error: ApiError, *, offset: int) -> bool:
        """The forge has another number of lines than we believed: fewer (fill the hole) or more (skip them)."""
        expected = error.body.get("next_offset")
        if error.code != "log_offset" or not isinstance(expected, int) or expected == offset:
            return False
        if expected > offset:
            self._spool.forget(expected)
            return self._spool.sent == expected
        missing = min(offset - expected, BATCH_LINES)
        self._post(expected, [(now(), "##[warning]The forge lost a line here that it had taken before.")] * missing)
        return True

    def _send_steps(self) -> None:
        if not self._begun.is_set():
            # The first program waits for this; what is said of the steps after it can follow.
            self._send_those(lambda step: step["state"] != "pending")
        self._send_those(lambda _: True)

    def _send_those(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        with self._lock:
            steps = {number: step for number, step in self._steps.items() if wanted(step)}
            for number in steps:
                del self._steps[number]
        portion: list[dict[str, Any]] = []
        for number in sorted(steps):
            if len(portion) >= 100 or sum(len(step.get("summary", "")) for step in portion) > BATCH_BYTES // 2:
                self._patch(portion)
                portion = []
            portion.append(steps[number])
        if portion:
            self._patch(portion)
        if any(number > 1 and step["state"] != "pending" for number, step in steps.items()):
            self._begun.set()

    def _patch(self, steps: list[dict[str, Any]]) -> None:
        try:
            self._client.call("PATCH", f"{self._path}/steps", token=self._token, body={"steps": steps}, stop=self._stop)
        except ApiError as error:
            if error.job_is_gone or error.status not in (400, 413):
                raise
            # A summary or annotation the forge refuses must not hide that the step ended.
            self._report(f"{self._path}: steps sent without annotations and summary: {error}")
            body = {"steps": [bare(step) for step in steps]}
            self._client.call("PATCH", f"{self._path}/steps", token=self._token, body=body, stop=self._stop)

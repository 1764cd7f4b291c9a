"""How does the runner wait for jobs, and when does it stop?"""

from __future__ import annotations

import signal
import sys
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import FrameType

from ci.runner import VERSION, environment
from ci.runner.client import ApiError, Client, GaveUp
from ci.runner.config import Config
from ci.runner.job import Host, Job
from ci.runner.leftovers import clear_leftovers
from ci.runner.payload import Payload, PayloadError
from ci.runner.workspace import Folders

POLL_SECONDS = 50.0
# An answer without a job that came at once must not become a busy loop.
SHORTEST_POLL = 1.0
LAST_POLL_SECONDS = 5.0
CLEAN, REFUSED, OUTDATED = 0, 1, 7
# What the forge says of a single-use runner that gets no job any more, or whose version it does not take.
OUTDATED_PHASE = "outdated"
RETIRED_PHASES = ("succeeded", "failed")
OUTDATED_CODE = "runner_outdated"


class _Interrupted(BaseException):
    """A signal arrived while a poll was waiting. Not an Exception, so that no library swallows it."""


def report(text: str) -> None:
    """A line of the runner's own log."""
    print(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {text}", file=sys.stderr, flush=True)


class _Outdated(Exception):
    """The forge takes no runner of this version."""


class Worker:
    """Takes jobs one after the other. The first SIGTERM or SIGINT lets the job in hand end, the second stops it."""

    def __init__(self, config: Config, *, work: Path, once: bool, pass_env: frozenset[str] = frozenset()) -> None:
        self._config = config
        self._work = work
        self._once = once or config.ephemeral
        self._pass_env = pass_env
        self._client = Client(config.url, report=report)
        self._signals = 0
        self._polling = False
        self._retired = False
        self._job: Job | None = None
        self._name = config.name
        self._labels = config.labels

    def run(self) -> int:
        """The exit status: CLEAN, REFUSED by the forge, or OUTDATED by its word."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._signalled)
        try:
            if left := clear_leftovers(self._work):
                report(f"ended {len(left)} processes of a job whose runner was killed")
            self._introduce()
            report(f"runner {self._name} ({', '.join(self._labels)}) waits for jobs of {self._config.url}")
            while self._signals == 0 and not self._retired:
                payload = self._poll()
                if payload is not None:
                    self._run_job(payload)
                    if self._once:
                        break
        except GaveUp:
            pass
        except (_Outdated, ApiError) as error:
            if isinstance(error, _Outdated) or error.code == OUTDATED_CODE:
                report(f"The forge does not take version {VERSION} of the runner any more: install its present one.")
                return OUTDATED
            report(_refusal(error))
            return REFUSED
        finally:
            self._client.close()
        report("runner stopped")
        return CLEAN

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._job is not None:
            if self._signals == 1:
                report("will stop after the job in hand; a second signal ends it at once")
            else:
                self._job.control.stop("the runner was told twice to stop")
        if self._polling:
            # Only once: a second signal must not break the handling of the first.
            self._polling = False
            raise _Interrupted

    def _stopping(self) -> bool:
        return self._signals > 0

    def _introduce(self) -> None:
        """Tell the forge which program this is now, and learn the name and labels it knows."""
        body = {"version": VERSION, "os": environment.system().lower(), "arch": environment.architecture().lower()}
        _, answer = self._client.call("PATCH", "runners/self", token=self._config.token, body=body, stop=self._stopping)
        self._name = str(answer.get("name") or self._name)
        labels = answer.get("labels")
        if isinstance(labels, list):
            self._labels = tuple(str(label) for label in labels)
        self._heed(answer)

    def _heed(self, answer: dict[str, object]) -> None:
        """What the forge says a single-use runner is, may be its end. Raises _Outdated."""
        if self._config.ephemeral:
            if answer.get("phase") == OUTDATED_PHASE:
                raise _Outdated
            self._retired = answer.get("phase") in RETIRED_PHASES

    def _ask_standing(self) -> None:
        """A single-use runner whose poll found nothing may have been retired meanwhile. Raises ApiError, GaveUp."""
        if self._config.ephemeral:
            _, answer = self._client.call("GET", "runners/self", token=self._config.token, stop=self._stopping)
            self._heed(answer)

    def _poll(self) -> Payload | None:
        """One job; None after a signal. One poll_id until an answer came, so that a lost answer is given again."""
        poll_id = uuid.uuid4().hex
        while self._signals == 0:
            began = time.monotonic()
            try:
                self._polling = True
                if self._signals:
                    raise _Interrupted
                status, body = self._fetch(poll_id, wait=POLL_SECONDS, stop=self._stopping)
                self._polling = False
            except _Interrupted:
                self._polling = False
                return self._last_poll(poll_id)
            except GaveUp:
                return self._last_poll(poll_id)
            finally:
                self._polling = False
            if payload := self._read(status, body):
                return payload
            self._ask_standing()
            if self._retired:
                report("the forge has retired this runner")
                return None
            poll_id = uuid.uuid4().hex
            if time.monotonic() - began < SHORTEST_POLL and self._signals == 0:
                time.sleep(SHORTEST_POLL)
        return None

    def _fetch(self, poll_id: str, *, wait: float, stop: Callable[[], bool]) -> tuple[int, dict[str, object]]:
        body = {"poll_id": poll_id, "wait": wait}
        return self._client.call("POST", "jobs/fetch", token=self._config.token, body=body, wait=wait, stop=stop)

    def _last_poll(self, poll_id: str) -> Payload | None:
        """The broken-off poll may have been given a job: ask once more, or that job would wait for its lease."""
        self._client.reconnect()
        until = time.monotonic() + LAST_POLL_SECONDS
        try:
            status, body = self._fetch(poll_id, wait=0, stop=lambda: time.monotonic() > until or self._signals > 1)
        except (GaveUp, ApiError):
            return None
        return self._read(status, body)

    def _read(self, status: int, body: dict[str, object]) -> Payload | None:
        if status != 200:
            return None
        try:
            return Payload.read(body)
        except PayloadError as error:
            # Unacknowledged, it goes back to the queue; taking it again at once would only spin.
            report(str(error))
            time.sleep(SHORTEST_POLL)
            return None

    def _run_job(self, payload: Payload) -> None:
        folders = Folders.of(self._work, str(payload.github.get("repository") or "unknown/unknown"))
        host = Host(self._name, self._labels, self._pass_env)
        self._job = Job(payload, client=self._client, folders=folders, host=host, report=report)
        if self._signals > 1:
            self._job.control.stop("the runner was told twice to stop")
        report(f"job {payload.id} ({payload.name}) begins")
        try:
            report(f"job {payload.id} ended: {self._job.run()}")
        finally:
            self._job = None


def _refusal(error: ApiError) -> str:
    if error.status == 401:
        return "The forge does not know this runner any more (it was removed, or its job is done). Register it again."
    return f"The forge refuses this runner: {error}"

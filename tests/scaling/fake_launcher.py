"""A launcher without an engine: processes are rows in memory, and a test decides what becomes of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from ci.scaling.launchers.protocol import Launch, Process, TransientLaunchError


class Killed(BaseException):
    """The scaler's process is killed at this point: nothing after it happens, no handler runs."""


@dataclass
class Started:
    launch: Launch
    process: Process


class FakeLauncher:
    """Keeps to the protocol of Launcher. What goes wrong is said by the attributes."""

    def __init__(self) -> None:
        self.started: dict[str, Started] = {}  # by handle
        self.stops: list[tuple[str, bool]] = []  # told to processes that live, or that it does not know
        self.dropped: list[str] = []  # told of processes that had ended
        self.refusals: list[Exception] = []  # raised by the next starts, one each
        self.killed_before_start = self.killed_after_start = False
        self.away = False  # every call but start is refused
        self.stubborn = False  # a request to end is ignored
        self.immortal = False  # force too
        self.before_stop: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def start(self, launch: Launch) -> str:
        if self.killed_before_start:
            raise Killed
        with self._lock:
            if self.refusals:
                raise self.refusals.pop(0)
            handle = self._handle(launch.identity)
            if handle is None:
                handle = f"{launch.identity}:{len(self.started) + 1}"
                self.started[handle] = Started(launch, _process(launch, handle))
        if self.killed_after_start:
            raise Killed
        return handle

    def poll(self, handle: str) -> Process | None:
        self._answer()
        found = self.started.get(handle)
        return found.process if found else None

    def stop(self, handle: str, *, force: bool) -> None:
        self.before_stop()
        self._answer()
        found = self.started.get(handle)
        if found is not None and found.process.state == "exited":
            self.dropped.append(handle)
            return
        self.stops.append((handle, force))
        if found is None or self.immortal or (self.stubborn and not force):
            return
        self.end(handle, 137 if force else 143, "ended by a signal")

    def list(self, set_id: int | None = None) -> list[Process]:
        self._answer()
        found = [started.process for started in self.started.values()]
        return sorted((one for one in found if set_id in (None, one.set_id)), key=lambda one: one.identity)

    # What a test does behind the launcher's back:

    def end(self, handle: str, exit_code: int | None, reason: str = "") -> None:
        started = self.started[handle]
        started.process = replace(started.process, state="exited", exit_code=exit_code, reason=reason)

    def lose(self, handle: str) -> None:
        """As if the engine had removed it: nothing is known of it any more."""
        del self.started[handle]

    @property
    def running(self) -> list[str]:
        return [handle for handle, one in self.started.items() if one.process.state != "exited"]

    def _handle(self, identity: str) -> str | None:
        return next((handle for handle, one in self.started.items() if one.launch.identity == identity), None)

    def _answer(self) -> None:
        if self.away:
            raise TransientLaunchError("the engine does not answer", retry_after=30)


def _process(launch: Launch, handle: str) -> Process:
    return Process(
        identity=launch.identity,
        handle=handle,
        set_id=launch.set_id,
        runner_id=launch.runner_id,
        attempt=launch.attempt,
        state="running",
        exit_code=None,
        reason="",
    )

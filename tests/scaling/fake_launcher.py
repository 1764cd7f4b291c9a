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
    gone: bool = False  # the engine knows nothing of it any more


class FakeLauncher:
    """Keeps to the protocol of Launcher, as its suite sees to. What goes wrong is said by the attributes."""

    def __init__(self) -> None:
        self.started: dict[str, Started] = {}  # by handle
        self.stops: list[tuple[str, bool]] = []  # told to processes that live, or that it does not know
        self.dropped: list[str] = []  # told of processes that had ended
        self.refusals: list[Exception] = []  # raised by the next starts, one each
        self.killed_before_start = self.killed_after_start = False
        self.killed_at = ""  # before one of poll, stop and list, or "stopped": after a stop
        self.away = False  # every call is refused
        self.coming_up = False  # new processes are starting, and do not run yet
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
            self._answer()
            handle = self._handle(launch.identity)
            if handle is None:
                handle = f"{launch.identity}:{len(self.started) + 1}"
                self.started[handle] = Started(launch, _process(launch, handle, coming_up=self.coming_up))
        if self.killed_after_start:
            raise Killed
        return handle

    def poll(self, handle: str) -> Process | None:
        self._answer("poll")
        found = self._found(handle)
        return found.process if found else None

    def stop(self, handle: str, *, force: bool) -> None:
        self.before_stop()
        self._answer("stop")
        found = self._found(handle)
        if found is not None and found.process.state == "exited":
            self.dropped.append(handle)
            found.gone = force
        else:
            self.stops.append((handle, force))
            if found is not None and not self.immortal and (force or not self.stubborn):
                self.end(handle, 137 if force else 0, "ended by a signal" if force else "")
        if self.killed_at == "stopped":
            raise Killed

    def list(self, set_id: int | None = None) -> list[Process]:
        self._answer("list")
        found = [one.process for one in self.started.values() if not one.gone]
        wanted = [one for one in found if set_id in (None, one.set_id)]
        return sorted(wanted, key=lambda one: (one.set_id, one.runner_id, one.attempt))

    # What a test does behind the launcher's back:

    def end(self, handle: str, exit_code: int | None, reason: str = "") -> None:
        started = self.started[handle]
        started.process = replace(started.process, state="exited", exit_code=exit_code, reason=reason)

    def lose(self, handle: str) -> None:
        """As if the engine had removed it: nothing is known of it any more."""
        self.started[handle].gone = True

    @property
    def running(self) -> list[str]:
        return [handle for handle, one in self.started.items() if not one.gone and one.process.state != "exited"]

    def _found(self, handle: str) -> Started | None:
        found = self.started.get(handle)
        return None if found is None or found.gone else found

    def _handle(self, identity: str) -> str | None:
        found = (handle for handle, one in self.started.items() if one.launch.identity == identity and not one.gone)
        return next(found, None)

    def _answer(self, call: str = "start") -> None:
        if self.killed_at == call:
            raise Killed
        if self.away:
            raise TransientLaunchError("the engine does not answer", retry_after=30)


def _process(launch: Launch, handle: str, *, coming_up: bool) -> Process:
    return Process(
        identity=launch.identity,
        handle=handle,
        set_id=launch.set_id,
        runner_id=launch.runner_id,
        attempt=launch.attempt,
        state="starting" if coming_up else "running",
        exit_code=None,
        reason="",
    )

"""How do runners run as processes of this very machine, without being children that end with the scaler?

Each has a supervisor (shim.py) in a session of its own, which holds the lock of the attempt's folder for life, starts
the runner, adopts all that descends from it and writes down how it ended. This file only reads the folders, and sends
signals to processes whose number and start time both fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from django.conf import settings

from ci.scaling.launchers import process_table
from ci.scaling.launchers.local_attempt import DOOMED, Attempt, Started, machine, name_machine, remove_tree
from ci.scaling.launchers.local_end import end_marked, kill, settle
from ci.scaling.launchers.local_template import OF_SERVERS, check_template
from ci.scaling.launchers.protocol import (
    LIMIT_SECONDS,
    Launch,
    PermanentLaunchError,
    Process,
    TransientLaunchError,
    read_identity,
)
from ci.scaling.launchers.shim import ASK

__all__ = ["LocalLauncher", "check_template", "from_settings"]

ROOT = Path(__file__).resolve().parents[3]
RUNNER = (sys.executable, "-m", "ci.runner", "once")
# The last look of a call that gives up takes some more seconds.
_LIMIT = LIMIT_SECONDS - 6.0
KEEP_SECONDS = 24 * 3600.0
KEEP_MOST = 1000
_TICK = 0.02
_HANDLE = re.compile(r"(forge-[0-9-]{1,60}):([0-9]{1,10}):([0-9]{1,20}):([0-9a-f]{16})")
ELSEWHERE = "its process is on another machine, where only a scaler of that machine can look after it"


def from_settings(*, installation: str) -> LocalLauncher:
    """The launcher on this installation's data folder."""
    return LocalLauncher(Path(settings.DATA_DIR) / "launches", installation=installation)


class LocalLauncher:
    """A Launcher on a state folder. `keep_seconds`, `keep_most`: how long, and how many, ended attempts are known."""

    def __init__(
        self,
        folder: Path,
        *,
        installation: str,
        command: Sequence[str] = RUNNER,
        limit: float = _LIMIT,
        keep_seconds: float = KEEP_SECONDS,
        keep_most: int = KEEP_MOST,
    ) -> None:
        self._short = hashlib.sha256(installation.encode()).hexdigest()[:16]
        self._folder = folder / self._short
        self._command = tuple(command)
        self._limit = limit
        self._keep_seconds = keep_seconds
        self._keep_most = keep_most
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, launch: Launch) -> str:
        """See Launcher."""
        if sys.platform != "linux":
            raise PermanentLaunchError("Local processes can be launched on Linux only; use Docker or Kubernetes.")
        if problems := check_template(launch.template):
            raise PermanentLaunchError(" ".join(problems))
        if read_identity(launch.identity) != (launch.set_id, launch.runner_id, launch.attempt):
            raise PermanentLaunchError(f"'{launch.identity[:80]}' does not name this attempt.")
        deadline = time.monotonic() + self._limit
        attempt = Attempt(self._folder / launch.identity)
        _check_work(launch)
        try:
            return self._start(attempt, launch, deadline)
        except OSError as error:
            raise TransientLaunchError(f"The process could not be started: {error.strerror or error}.") from error

    def poll(self, handle: str) -> Process | None:
        """See Launcher."""
        self._collect_children()
        found = self._find(handle)
        return self._look(*found) if found else None

    def stop(self, handle: str, *, force: bool) -> None:
        """See Launcher."""
        found = self._find(handle)
        if found is None or found[0].ended():
            return
        attempt, started = found
        try:
            if force:
                kill(attempt, started, deadline=time.monotonic() + self._limit)
            elif started.is_alive:
                process_table.signal_exactly(started.pid, started.started, ASK)
        except OSError as error:
            raise TransientLaunchError(f"The process could not be ended: {error.strerror or error}.") from error
        self._collect_children()

    def list(self, set_id: int | None = None) -> list[Process]:
        """See Launcher. Forgets what ended long ago."""
        self._collect_children()
        found = []
        for attempt in self._attempts():
            of = read_identity(attempt.identity)
            if set_id is not None and of is not None and of[0] != set_id:
                continue
            if (started := attempt.started()) and (process := self._look(attempt, started)):
                found.append(process)
        self._tidy()
        return found

    # --- starting --------------------------------------------------------------------------------------------------

    def _start(self, attempt: Attempt, launch: Launch, deadline: float) -> str:
        """Raises OSError and TransientLaunchError."""
        while True:
            for folder in (self._folder.parent, self._folder, attempt.folder):
                folder.mkdir(mode=0o700, exist_ok=True)
            name_machine(self._folder.parent)
            with attempt.locked() as lock:
                if started := attempt.started():
                    return attempt.handle(started)
                if lock is not None:
                    return self._spawn(attempt, launch, lock, deadline)
            if time.monotonic() > deadline:
                raise TransientLaunchError(f"Another start of {launch.identity} did not come to its end.")
            time.sleep(_TICK)

    def _spawn(self, attempt: Attempt, launch: Launch, lock: int, deadline: float) -> str:
        """Start the supervisor and hear its handle. Raises OSError, TransientLaunchError; then nothing was started."""
        with attempt.log.open("ab") as log, _in_memory(self._order(attempt, launch)) as order:
            child = subprocess.Popen(
                [sys.executable, "-m", "ci.scaling.launchers.shim", str(attempt.folder)],
                cwd=ROOT,
                env=_inherited(),
                stdin=order,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
        assert child.stdout is not None
        self._children.append(child)
        with child.stdout:
            if handle := _line(child.stdout.fileno(), deadline):
                return handle
        child.kill()
        child.wait()
        end_marked(attempt)
        why = attempt.log.read_text(errors="replace").strip().splitlines()[-1:] or ["it gave no sign in time"]
        attempt.remove()
        raise TransientLaunchError(f"The process could not be started: {why[0]}")

    def _order(self, attempt: Attempt, launch: Launch) -> bytes:
        """What the supervisor is told; holds the token."""
        given = launch.template
        added = dict(given.get("environment", {}))
        work = attempt.folder / "work"
        if "work" in given:
            work = Path(given["work"]) / f"{launch.identity}-{self._short}"
        # Without the mark in the environment of jobs, nothing would lead to them once their parents are gone.
        names = ",".join(sorted({*added, process_table.MARK}))
        order = {
            "command": [*self._command, "--work", str(work), "--pass-env", names],
            "environment": {
                **_inherited(),
                **added,
                **launch.environment(),
                process_table.MARK: str(attempt.folder),
            },
            "work": str(work),
            "nice": given.get("nice", 0),
            "memory_mib": given.get("memory_mib"),
        }
        return json.dumps(order).encode()

    # --- looking ---------------------------------------------------------------------------------------------------

    def _attempts(self) -> tuple[Attempt, ...]:
        """By identity, in the order of their numbers."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise TransientLaunchError(f"The folder of the processes cannot be read: {error.strerror}.") from error
        numbers = {name: found for name in names if (found := read_identity(name))}
        return tuple(Attempt(self._folder / name) for name in sorted(numbers, key=lambda name: numbers[name]))

    def _find(self, handle: str) -> tuple[Attempt, Started] | None:
        """Raises TransientLaunchError: of what is on another machine nothing is known, not even that it is gone."""
        parts = _HANDLE.fullmatch(handle)
        if parts is None or read_identity(parts[1]) is None:
            return None
        if parts[4] != machine(self._folder.parent):
            raise TransientLaunchError(ELSEWHERE)
        attempt = Attempt(self._folder / parts[1])
        started = attempt.started()
        return (attempt, started) if started and attempt.handle(started) == handle else None

    def _look(self, attempt: Attempt, started: Started) -> Process | None:
        ended = attempt.ended()
        if ended is None and not started.is_alive:
            ended = settle(attempt)
            if ended is None and attempt.started() is None:
                return None  # removed while we looked
        return attempt.process(attempt.started() or started, ended)

    # --- tidying ---------------------------------------------------------------------------------------------------

    def _collect_children(self) -> None:
        """Supervisors that ended while this process lived."""
        self._children = [child for child in self._children if child.poll() is None]

    def _tidy(self) -> None:
        """Forget attempts that ended long ago, or never came to anything."""
        latest_first = sorted(self._attempts(), key=lambda attempt: -attempt.touched_at())
        for number, attempt in enumerate(latest_first):
            if number >= self._keep_most or attempt.touched_at() < time.time() - self._keep_seconds:
                with contextlib.suppress(OSError), attempt.locked() as lock:
                    if lock is not None and (attempt.ended() or not attempt.started()):
                        attempt.remove()
        for left in self._folder.glob(f"{DOOMED}*"):
            remove_tree(left)


def _check_work(launch: Launch) -> None:
    """Raises PermanentLaunchError where the template's work folder can be neither found nor made."""
    if "work" in launch.template:
        work = Path(launch.template["work"])
        try:
            work.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise PermanentLaunchError(f"The work folder {work} cannot be used: {error.strerror}.") from error
        if not os.access(work, os.W_OK | os.X_OK):
            raise PermanentLaunchError(f"The work folder {work} cannot be written by the forge's user.")


def _inherited() -> dict[str, str]:
    """A runner executes other people's programs: it gets nothing that is meant for the servers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_SERVERS)}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def _in_memory(content: bytes) -> IO[bytes]:
    """A file without a name: whole for its reader from the start, and never on a disk."""
    file = os.fdopen(os.memfd_create("order"), "w+b")
    file.write(content)
    file.seek(0)
    return file


def _line(descriptor: int, deadline: float) -> str:
    """One line, without its end; empty where none came in time, or the writer is gone."""
    text = b""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while b"\n" not in text:
        left = deadline - time.monotonic()
        if left <= 0 or not waiting.poll(left * 1000):
            return ""
        data = os.read(descriptor, 1000)
        if not data:
            return ""
        text += data
    return text.partition(b"\n")[0].decode()

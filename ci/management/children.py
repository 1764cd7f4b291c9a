"""How does one child of `manage.py up` start, end, and get restarted?"""

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ci.management.start_errors import CannotContinue
from forge.child_processes import ending_with_parent
from forge.postgres import EmbeddedPostgres, PostgresError

_CRASHES, _WITHIN = 5, 60.0  # so many ends within so many seconds are no accident
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0  # seconds before a restart
_LAST_LINES = 5


class Child(Protocol):
    name: str
    log: Path

    @property
    def pid(self) -> int | None: ...
    def start(self) -> None: ...
    def has_ended(self) -> bool: ...
    def ask_to_end(self) -> None: ...
    def end(self, until: float) -> None: ...
    def kill(self) -> None: ...


class Program:
    """A program in a process group of its own, its output appended to a log file.

    `patience` holds the seconds it may take to end after each SIGTERM; when the last ran out its group is killed.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        cwd: Path,
        patience: Sequence[float],
        open_files: int | None = None,
    ) -> None:
        """`open_files`: how many it may have at once, connections too; None: as many as this process."""
        self.name, self.log = name, log
        self._open_files = open_files
        self._command, self._env, self._cwd, self._patience = command, env, cwd, patience
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._cwd,
                env=self._env,
                start_new_session=True,  # Ctrl-C reaches us alone, and we end the children in order
                preexec_fn=self._entrance(),
            )

    def _entrance(self) -> Callable[[], None]:
        ending, open_files = ending_with_parent(signal.SIGTERM), self._open_files

        def enter() -> None:
            ending()
            if open_files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

        return enter

    def has_ended(self) -> bool:
        """Whether it has; what it left of its process group is killed then, so that a restart finds no rival."""
        if self._process is None:
            return True
        # Looked at without collecting it: as long as it is uncollected, nobody else can get the group's number.
        if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        self._kill_group()
        return True

    def ask_to_end(self) -> None:
        if self._process is not None and not self.has_ended():
            self._process.terminate()

    def end(self, until: float) -> None:
        """Wait for the end that was asked for, with more pressure as time passes, at most until `until`."""
        for number, patience in enumerate(self._patience):
            if number:
                self.ask_to_end()
            limit = min(until, time.monotonic() + patience)
            while not self.has_ended():
                if time.monotonic() > limit:
                    break
                time.sleep(0.02)
        self._kill_group()

    def kill(self) -> None:
        """Kill its group without collecting it: `end`, which may be waiting for it right now, does that."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _kill_group(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Database:
    """The embedded PostgreSQL as a child; a server that was found running is left alone."""

    name = "database"

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self.log = server.log

    @property
    def pid(self) -> int | None:
        return self._server.process.pid if self._server.process is not None else None

    def start(self) -> None:
        self._server.start()

    def has_ended(self) -> bool:
        return self._server.process is not None and self._server.process.poll() is not None

    def ask_to_end(self) -> None:
        if self._server.process is not None:
            self._server.process.send_signal(signal.SIGINT)

    def end(self, until: float) -> None:
        self._server.stop(max(until - time.monotonic(), 1.0))

    def kill(self) -> None:
        """Never: a database is not killed for haste."""


class Watched:
    """A child with its history of ends: decides when it starts again and when that is hopeless."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._ends: list[float] = []
        self._due: float | None = None

    def look(self, now: float) -> str | None:
        """Restart it where it ended and its pause is over; returns a line to tell, if any. Raises CannotContinue."""
        if self._due is not None:
            if now < self._due:
                return None
            self._due = None
            try:
                self.child.start()
            except (OSError, subprocess.SubprocessError, PostgresError) as error:
                # Perhaps something passing: a full process table, a database that still recovers.
                return self._start_later(time.monotonic(), f"cannot be started: {error}")
            return f"{self.child.name} runs again"
        if not self.child.has_ended():
            return None
        return self._start_later(now, f"ended unexpectedly (see {self.child.log})")

    def _start_later(self, now: float, what: str) -> str:
        self._ends = [end for end in self._ends if end > now - _WITHIN] + [now]
        if len(self._ends) >= _CRASHES:
            raise CannotContinue(
                f"{self.child.name} ended {len(self._ends)} times within a minute; the end of {self.child.log}:\n"
                + last_lines(self.child.log)
            )
        pause = min(_FIRST_PAUSE * 2 ** (len(self._ends) - 1), _LONGEST_PAUSE)
        self._due = now + pause
        return f"{self.child.name} {what}; it starts again in {pause:g} s"


def last_lines(log: Path, count: int = _LAST_LINES) -> str:
    """The last lines of a log, indented."""
    try:
        with log.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 8192, 0))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError as error:
        return f"  ({error.strerror})"
    return "\n".join(f"  {line}" for line in lines[-count:]) or "  (empty)"

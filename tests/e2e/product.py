"""The whole product as its own process, the way an operator starts it: `manage.py up`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.ports import reserve_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 300  # on a machine that runs other tests at the same time
STOP_SECONDS = 180
# What the session's own database and settings are called must not reach the product.
_NOT_OURS = ("FORGE_", "DATABASE_URL", "DJANGO_", "PYTEST_")

Found = TypeVar("Found")


def eventually(
    look: Callable[[], Found | None],
    *,
    seconds: float,
    what: str,
    otherwise: Callable[[], str] = str,
    every: float = 0.1,
) -> Found:
    """What `look` returns once that is true. After the deadline a failure says what was waited for, and `otherwise`."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}\n{otherwise()}")
        time.sleep(every)
    return found


class Product:
    """A running installation; `variables` go to its environment."""

    def __init__(self, data: Path, *words: str, port: int | None = None, **variables: str) -> None:
        self.data, self.port = data, port or reserve_port()
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        self._environment = {**environment, **variables}
        self._command = [sys.executable, "manage.py", "up", "--data", str(data), "--port", str(self.port), *words]
        self.start()

    def start(self) -> None:
        """Run the command, for the first time or again after a kill."""
        self.printed = ""
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.printed += line

    def wait_until_printed(self, text: str, *, seconds: float = START_SECONDS) -> None:
        def printed() -> bool:
            assert text in self.printed or self._process.poll() is None, f"it ended:\n{self.printed}\n{self.logs()}"
            return text in self.printed

        eventually(printed, seconds=seconds, what=f"printed: {text}", otherwise=lambda: self.printed + self.logs())

    @property
    def first_account(self) -> tuple[str, str]:
        """The administrator's name and password, as printed."""
        name = re.search(r"account +(\S+) is the administrator", self.printed)
        password = re.search(r"password: (\S+)", self.printed)
        assert name is not None and password is not None, self.printed
        return name[1], password[1]

    def stop(self) -> int:
        """Its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        finally:
            self._process.kill()
            self._reader.join(10)

    def kill(self) -> None:
        """SIGKILL for the command alone; the kernel asks its children to end, which takes some of them a while."""
        self._process.kill()
        self._process.wait(STOP_SECONDS)
        self._reader.join(10)

    def cut_power(self) -> None:
        """SIGKILL for all of it at once: nobody is left who could tidy up or restart anything."""
        parents = {self._process.pid}
        doomed = list(parents)
        while parents:
            parents = {pid for parent in parents for pid in children_of(parent)}
            doomed += parents
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(STOP_SECONDS)
        self._reader.join(10)

    def child(self, name: str) -> int:
        """The process number of the child whose command line holds `name`, once it runs."""

        def running() -> int | None:
            children = json.loads((self.data / "children.json").read_text())
            return next((int(pid) for pid in children if name in command_of(int(pid))), None)

        return eventually(running, seconds=120, what=f"a running {name}", otherwise=lambda: self.printed)

    def logs(self, lines: int = 25) -> str:
        """The ends of the logs of all its parts, for the message of a failed test."""
        parts = []
        for log in sorted(self.data.glob("logs/*.log")):
            end = log.read_text(errors="replace").splitlines()[-lines:]
            parts.append("\n".join([f"--- {log.name}", *end]))
        return "\n".join(parts)


def command_of(pid: int) -> str:
    """The command line of a process; '' for one that is gone or only waits to be collected."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(entry.name))
    return found

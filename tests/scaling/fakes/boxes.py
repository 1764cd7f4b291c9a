"""What runs in a faked container? A real process with all its descendants, found by a mark as a cgroup would."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

MARK = "FAKE_CONTAINER"
LOOK_SECONDS = 0.01


class Box:
    """One container's processes. `ended` is called once, from a thread of the box, when its first process has ended."""

    def __init__(self, mark: str, folder: Path, *, ended: Callable[[Box], None]) -> None:
        self.mark = mark
        self.folder = folder
        self.log = folder / "log"
        self.exit_code: int | None = None
        self.out_of_memory = False
        self.process: subprocess.Popen[bytes] | None = None
        self._ended = ended
        self._over = threading.Event()
        folder.mkdir(parents=True, exist_ok=True)
        self.log.touch()

    def start(self, command: Sequence[str], environment: Mapping[str, str], *, memory: int = 0) -> None:
        """Raises OSError where there is no such program."""
        variables = {"PATH": os.defpath, "HOME": str(self.folder), **environment, MARK: self.mark}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(command),
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        threading.Thread(target=self._watch, args=(self.process, memory), daemon=True).start()

    def signal(self, number: int) -> None:
        """As engines do it: to the first process alone; SIGKILL ends them all."""
        if number == signal.SIGKILL:
            self.kill()
        elif self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        while found := self.pids():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(LOOK_SECONDS)

    def join(self, seconds: float) -> bool:
        return self._over.wait(seconds)

    def pids(self) -> list[int]:
        """Processes that carry the mark and have not ended."""
        wanted = f"{MARK}={self.mark}".encode()
        return [pid for pid in _all_pids() if wanted in _read(pid, "environ").split(b"\0") and _lives(pid)]

    def _watch(self, process: subprocess.Popen[bytes], memory: int) -> None:
        while memory and process.poll() is None:
            if _resident(process.pid) > memory:
                self.out_of_memory = True
                self.kill()
            time.sleep(LOOK_SECONDS)
        code = process.wait()
        self.kill()  # with the first process of a container goes all that is in it
        self.exit_code = code if code >= 0 else 128 - code
        self._over.set()
        self._ended(self)


def _all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _lives(pid: int) -> bool:
    """Not a zombie. Source: proc(5), the state is the first field after the name in brackets."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return bool(fields) and fields[0] not in (b"Z", b"X")


def _resident(pid: int) -> int:
    fields = _read(pid, "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0


def command_lines() -> str:
    """What anybody on this machine reads of the processes on it."""
    return "\n".join(_read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace") for pid in _all_pids())

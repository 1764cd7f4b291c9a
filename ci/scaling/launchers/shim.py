"""Who stays with a local runner while `manage.py scale` comes and goes? This process: it starts it, and tells its end.

Started by ci/scaling/launchers/local.py with the attempt's folder as its argument, the order as JSON on its standard
input, and the attempt's lock inherited. It answers with the handle on its standard output.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from ci.scaling.launchers import process_table
from ci.scaling.launchers.local_attempt import Attempt, Ended, Started
from ci.scaling.launchers.protocol import MAX_REASON
from ci.scaling.launchers.reasons import KILLED, ended_because
from forge.child_processes import adopt_orphans, ending_with_parent, start_time

ASK, KILL = signal.SIGTERM, signal.SIGUSR1
MOST_ORDER_BYTES = 4 * 1024 * 1024
_TAIL_BYTES = 2000
_MEMORY_TICK = 0.5
# As long as the end cannot be written down (a full disk), it is better not to have ended.
_WRITE_SECONDS = 120.0
_END_SECONDS = 20.0
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Order:
    """What to run."""

    command: list[str]
    environment: dict[str, str]
    work: str
    nice: int
    memory_mib: int | None


class Shim:
    """One runner's process, and all that descends from it."""

    def __init__(self, attempt: Attempt, order: Order) -> None:
        self._attempt = attempt
        self._umask = os.umask(0o077)
        self._order = order
        self._asked = self._told = self._kill = False
        self._runner = 0
        self._status: int | None = None
        self._why = ""
        self._tail = b""
        self._kills_before = process_table.oom_kills()
        reader, writer = os.pipe()
        for end in (reader, writer):
            os.set_blocking(end, False)
        self._wakeup = reader
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (ASK, KILL, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._signalled)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._asked |= number == ASK
        self._kill |= number == KILL

    def run(self, announce: Callable[[str], None]) -> None:
        """Start, stay, write down the end. `announce` is given the handle as soon as it is on disk."""
        pid = os.getpid()
        began = Started(pid, start_time(pid) or "", process_table.boot(), "starting", self._order.work)
        self._attempt.write(began)
        announce(self._attempt.handle(began))
        try:
            process = self._start()
        except (OSError, ValueError) as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            self._end(Ended(code, f"the runner could not be started (exit code {code}): {error}"[:MAX_REASON]))
            return
        with contextlib.suppress(OSError):  # a full disk: it goes on being shown as starting
            self._attempt.write(Started(began.pid, began.started, began.boot, "running", began.work))
        assert process.stdout is not None
        self._stay(process.stdout)
        process.returncode = self._status  # it was collected here; Popen must not look for it
        self._end(self._conclude())

    def _start(self) -> subprocess.Popen[bytes]:
        Path(self._order.work).mkdir(mode=0o700, parents=True, exist_ok=True)
        die_with_us = ending_with_parent(signal.SIGKILL)

        def prepare() -> None:
            die_with_us()
            os.nice(self._order.nice)
            os.umask(self._umask)

        process = subprocess.Popen(
            self._order.command,
            env=self._order.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=prepare,  # safe: this process has one thread
            bufsize=0,
        )
        self._runner = process.pid
        return process

    def _stay(self, output: IO[bytes]) -> None:
        os.set_blocking(output.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._wakeup, selectors.EVENT_READ)
            selector.register(output, selectors.EVENT_READ)
            while self._status is None:
                for key, _ in selector.select(_MEMORY_TICK if self._order.memory_mib else None):
                    if key.fd == self._wakeup:
                        os.read(self._wakeup, 4096)
                    elif not self._take(output):
                        selector.unregister(output)
                self._collect()
                self._obey()
        # A runner's end is the end of all it started; what wrote to the pipe is gone then, and it can be read out.
        self._end_descendants()
        while self._take(output):
            pass

    def _obey(self) -> None:
        if self._status is None and self._asked and not self._told:
            self._told = True  # once: a second one tells the runner to give its job up
            os.kill(self._runner, signal.SIGTERM)
        if self._status is None and self._kill:
            self._kill_all("it was killed on request")
        if self._status is None and self._order.memory_mib:
            used = process_table.memory_of(process_table.descendants(os.getpid())) // _MEBIBYTE
            if used > self._order.memory_mib:
                self._kill_all(f"out of memory: it used {used} MiB of the {self._order.memory_mib} MiB that it may use")

    def _kill_all(self, why: str) -> None:
        self._end_descendants()
        if self._status in (None, -signal.SIGKILL):
            self._status, self._why = -signal.SIGKILL, f"{why} (exit code {KILLED})"

    def _end_descendants(self) -> None:
        """Until none is left: each that ends hands its own children to us. Another user's may be out of reach."""
        until = time.monotonic() + _END_SECONDS
        while (rows := process_table.descendants(os.getpid())) and time.monotonic() < until:
            for row in rows:
                process_table.signal_exactly(row.pid, row.started, signal.SIGKILL)
            self._collect()
            time.sleep(0.01)
        self._collect()

    def _collect(self) -> None:
        """Every ended child: the runner, and orphans below it that came to us."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._runner:
                    self._status = os.waitstatus_to_exitcode(found[1])

    def _take(self, output: IO[bytes]) -> bool:
        """Some output into the log; False where there is none now, or no more ever."""
        data = output.read(64 * 1024)
        if not data:
            return False
        self._tail = (self._tail + data)[-_TAIL_BYTES:]
        self._attempt.append(data)
        return True

    def _conclude(self) -> Ended:
        status = self._status or 0
        code = status if status >= 0 else 128 - status
        if self._why:
            return Ended(code, self._why[:MAX_REASON])
        out_of_memory = code == KILLED and process_table.oom_kills() > self._kills_before
        tail = self._tail.decode(errors="replace").splitlines()[-3:]
        return Ended(code, ended_because(code, out_of_memory=out_of_memory, last_lines="\n".join(tail)))

    def _end(self, ended: Ended) -> None:
        until = time.monotonic() + _WRITE_SECONDS
        while True:
            try:
                self._attempt.write(ended)
                break
            except OSError:
                # Room may be in what the job left behind.
                self._attempt.clear_work(self._order.work)
                if time.monotonic() > until or not self._attempt.folder.exists():
                    return
                time.sleep(1.0)
        self._attempt.clear_work(self._order.work)


def _read_order() -> Order | None:
    """None where whoever started us was killed before the order was complete: then nothing shall be."""
    text = sys.stdin.buffer.read(MOST_ORDER_BYTES)
    try:
        return Order(**json.loads(text))
    except (ValueError, TypeError):
        return None


def _announce(handle: str) -> None:
    # Whoever started us may be gone; we are found by what is on disk.
    with contextlib.suppress(OSError):
        os.write(1, f"{handle}\n".encode())
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


def main(folder: str) -> int:
    """Exit status: 0 when the end of the runner is on disk, 1 where there was no order."""
    adopt_orphans()
    order = _read_order()
    if order is None:
        return 1
    Shim(Attempt(Path(folder)), order).run(_announce)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""How does a program run so that its output is streamed and its whole tree can be ended?"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ci.runner.control import Guard, Halt

TRACKING = "RUNNER_TRACKING_ID"

# GitHub docs, "Workflow cancellation reference": SIGINT, 7.5 s later SIGTERM, 2.5 s later SIGKILL.
INTERRUPT_SECONDS = 7.5
TERMINATE_SECONDS = 2.5

TICK = 0.1
# A child left in the background may hold the pipe open; its last lines get this long to arrive.
DRAIN_SECONDS = 2.0
_CHUNK = 64 * 1024


class Ended(NamedTuple):
    """How a program ended: its exit status (negative: by that signal), and whether we asked for it."""

    code: int
    halted: bool


class StartError(Exception):
    """A program could not be started; the text says why, for the log."""


def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    output: Callable[[bytes], None],
    guard: Guard,
) -> Ended:
    """Run a program to its end or until the guard ends it; stdout and stderr go, merged, to `output`.

    Raises StartError. The program's tree is known by
    RUNNER_TRACKING_ID in its environment, so children that left the process group are found too.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        raise StartError(_start_problem(argv, cwd, error)) from error
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    ender = _Ender(process, marker=env.get(TRACKING, ""), guard=guard)
    try:
        _pump(process, pipe, output=output, ender=ender)
    finally:
        if process.poll() is None:
            ender.kill_all()
            # A program of another user (sudo) may be out of reach; the job must end all the same.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TERMINATE_SECONDS)
        _leave(process)
    code = -signal.SIGKILL if process.returncode is None else process.returncode
    return Ended(code, halted=ender.started)


def _start_problem(argv: Sequence[str], cwd: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and not os.path.isdir(cwd):
        return (
            f"An error occurred trying to start process '{argv[0]}' with working directory '{cwd}'. "
            "No such file or directory"
        )
    if isinstance(error, OSError) and error.errno == 7:
        return f"Could not start '{argv[0]}': its arguments and environment variables are too long for this system."
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"Could not start '{argv[0]}' in '{cwd}': {reason}"


def _pump(process: subprocess.Popen[bytes], pipe: int, *, output: Callable[[bytes], None], ender: _Ender) -> None:
    """Read until the pipe is closed, or the program ended and its background children had their time."""
    drain_until: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if selector.select(TICK):
                data = os.read(pipe, _CHUNK)
                if not data:
                    break
                output(data)
            ender.tick()
            if process.poll() is not None:
                now = time.monotonic()
                drain_until = drain_until or now + (0.3 if ender.started else DRAIN_SECONDS)
                if now >= drain_until:
                    break
            elif ender.hopeless:
                break
    # The pipe may be closed before the program ends.
    with _ending(process) as wait:
        while process.poll() is None and not ender.hopeless:
            ender.tick()
            wait(TICK)
    ender.finish()


@contextlib.contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], object]]:
    """Waits so many seconds for the end of a program, and returns at once when it is there.

    Where the kernel cannot tell, by looking again and again, which mostly costs a step some milliseconds.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield lambda seconds: _try_to_wait(process, seconds)
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        yield lambda seconds: poll.poll(seconds * 1000)
    finally:
        os.close(descriptor)


def _try_to_wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Close our end, unless a background child still writes: then read on, or SIGPIPE would end it."""
    assert process.stdout is not None
    stream = process.stdout
    try:
        if not os.read(stream.fileno(), 1):
            stream.close()
            return
    except BlockingIOError:
        pass
    except OSError:
        stream.close()
        return
    os.set_blocking(stream.fileno(), True)
    threading.Thread(target=_discard, args=(stream.fileno(), stream.close), daemon=True).start()


def _discard(descriptor: int, close: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while os.read(descriptor, _CHUNK):
            pass
    close()


class _Ender:
    """Ends a program's tree in three stages once its guard says so."""

    def __init__(self, process: subprocess.Popen[bytes], *, marker: str, guard: Guard) -> None:
        self._process = process
        self._marker = marker
        self._guard = guard
        self._stage = 0
        self._next_at = 0.0
        self._killed_at: float | None = None
        self._seen: set[tuple[int, int]] = set()

    @property
    def started(self) -> bool:
        return self._stage > 0

    @property
    def hopeless(self) -> bool:
        """SIGKILL was sent long enough ago: what still lives cannot be ended by us."""
        return self._killed_at is not None and time.monotonic() > self._killed_at + TERMINATE_SECONDS

    def tick(self) -> None:
        state = self._guard.state()
        if state is Halt.NONE and not self.started:
            return
        now = time.monotonic()
        if state is Halt.KILL:
            self._stage = 3
            self.kill_all()
        elif self._stage == 0:
            self._advance(signal.SIGINT, now + self._scaled(INTERRUPT_SECONDS))
        elif now >= self._next_at and self._stage == 1:
            self._advance(signal.SIGTERM, now + self._scaled(TERMINATE_SECONDS))
        elif now >= self._next_at:
            self._stage = 3
            self.kill_all()

    def finish(self) -> None:
        """After an asked-for end nothing of the tree may live on, even where the program itself obeyed at once."""
        if self.started:
            if self._stage < 3:
                self._send(signal.SIGTERM)
            deadline = time.monotonic() + self._scaled(TERMINATE_SECONDS)
            while time.monotonic() < deadline and self._alive() and self._guard.state() is not Halt.KILL:
                time.sleep(TICK)
            self.kill_all()

    def _scaled(self, seconds: float) -> float:
        left = self._guard.time_left()
        return seconds if left is None else min(seconds, left / 3)

    def _advance(self, number: signal.Signals, next_at: float) -> None:
        self._stage += 1
        self._next_at = next_at
        self._send(number)

    def _alive(self) -> set[int]:
        found = tree(self._process.pid, marker=self._marker, known=self._seen)
        self._seen |= found
        return {pid for pid, _ in found}

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
        for pid in self._alive():
            # The group already got it; a second SIGINT would make many programs quit without their clean-up.
            if number is signal.SIGKILL or _group(pid) != self._process.pid:
                _kill(pid, number)

    def kill_all(self) -> None:
        """SIGKILL until no member is left: a fork may slip through one look at /proc."""
        self._killed_at = self._killed_at or time.monotonic()
        for _ in range(20):
            self._send(signal.SIGKILL)
            if not self._alive():
                return
            time.sleep(0.02)


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


class _Stat(NamedTuple):
    state: str
    parent: int
    session: int
    started: int  # clock ticks since boot: tells a process from a later one with the same id


def _stat(pid: int) -> _Stat | None:
    """What /proc says of a process; None where it is gone or /proc is absent."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return _Stat(fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


def _marked(pid: int, marker: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as stream:
            return f"{TRACKING}={marker}".encode() in stream.read()
    except OSError:
        return False


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _processes() -> dict[int, _Stat]:
    return {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None and stat.state not in "ZX"}


def tree(root: int, *, marker: str, known: Collection[tuple[int, int]] = ()) -> set[tuple[int, int]]:
    """Living processes (id, start time) that descend from `root`, share its session, or carry its tracking id."""
    living = _processes()
    members = {pid for pid, stat in living.items() if pid == root or stat.session == root}
    members |= {pid for pid, started in known if pid in living and living[pid].started == started}
    if marker:
        members |= {pid for pid in living if pid not in members and _marked(pid, marker)}
    grown = True
    while grown:
        more = {pid for pid, stat in living.items() if stat.parent in members and pid not in members}
        grown = bool(more)
        members |= more
    members.discard(os.getpid())
    return {(pid, living[pid].started) for pid in members}


def end_orphans(marker: str) -> list[int]:
    """SIGKILL everything that carries a tracking id beginning with `marker`; the ended processes' ids."""
    ended: set[int] = set()
    for _ in range(10):
        # A process that has ended but was not waited for has no environment any more, and so no mark.
        found = {pid for pid in _pids() if _marked(pid, marker)} - {os.getpid()}
        if not found:
            break
        for pid in found:
            _kill(pid, signal.SIGKILL)
        ended |= found
        time.sleep(0.02)
    return sorted(ended)

"""What does this machine's process table say? Linux's /proc; every question names a process by number and start."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from forge.child_processes import start_time

# In the environment of everything that one launch started: which one it was. The only trail where parents are gone.
MARK = "FORGE_LAUNCH"
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Row(NamedTuple):
    """A living process."""

    pid: int
    parent: int
    started: str  # clock ticks since boot


def boot() -> str:
    """Of this start of the machine: numbers and times of processes begin anew with the next."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def is_alive(pid: int, started: str) -> bool:
    """Whether this very process lives, not a later one with its number."""
    return start_time(pid) == started


def signal_exactly(pid: int, started: str, number: signal.Signals) -> bool:
    """Send a signal to this very process; False, and nothing sent, where it is gone or not ours."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        # From here on the number cannot come to mean another process without the descriptor telling.
        if not is_alive(pid, started):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(descriptor)
    return True


def descendants(pid: int) -> list[Row]:
    """Every living process below this one."""
    rows = list(_rows())
    found: list[Row] = []
    parents = {pid}
    while parents:
        found += (below := [row for row in rows if row.parent in parents])
        parents = {row.pid for row in below}
    return found


def marked(mark: str) -> list[Row]:
    """Every living process that carries this mark in the environment it was started with."""
    wanted = f"{MARK}={mark}".encode()
    return [row for row in _rows() if wanted in _environment(row.pid).split(b"\0")]


def memory_of(rows: list[Row]) -> int:
    """Bytes of memory that these processes use and share with no file."""
    return sum(_private_pages(row.pid) for row in rows) * _PAGE


def oom_kills() -> int:
    """How many processes the kernel has ended for want of memory since the machine started."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _rows() -> Iterator[Row]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                # The name before the last bracket may hold anything.
                fields = Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(") ")[2].split()
            except OSError:
                continue
            if fields and fields[0] not in "ZX":
                yield Row(int(name), int(fields[1]), fields[19])


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _private_pages(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return max(0, int(fields[1]) - int(fields[2]))
    except (OSError, ValueError, IndexError):
        return 0

"""How is no process left behind, whoever of us is killed?"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# Linux: <linux/prctl.h>
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

# Loaded here because nothing may be imported or loaded between fork and exec.
libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def ending_with_parent(how: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn`: the kernel sends `how` to the new process when the thread that starts it ends. Linux only."""
    parent = os.getpid()

    def ask() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, int(how), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

    return ask


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that `kill_orphans` finds it. Linux only."""
    if libc is not None:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(ours: set[int]) -> None:
    """Collect ended children that are not in `ours` (whose Popen collects them itself)."""
    for pid in children_of(os.getpid()):
        if pid not in ours:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def kill_orphans(*, keep: set[int]) -> int:
    """Kill and collect every child of this process but `keep`, and theirs as they are handed up; returns how many."""
    killed = 0
    while orphans := set(children_of(os.getpid())) - keep:
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            killed += 1
    return killed


def start_time(pid: int) -> str | None:
    """When a process started, in the kernel's own count: tells it from a later one with the same number."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else fields[19]


def children_of(parent: int) -> Iterator[int]:
    """Process numbers of the children of a process (none where there is no /proc)."""
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields is not None and int(fields[1]) == parent:
            yield int(entry.name)


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on; the name before it may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    except OSError:
        return None

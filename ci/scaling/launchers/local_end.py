"""How does a local runner end when its supervisor cannot see to it?"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

from ci.scaling.launchers import process_table
from ci.scaling.launchers.local_attempt import Attempt, Ended, Started
from ci.scaling.launchers.protocol import TransientLaunchError
from ci.scaling.launchers.shim import KILL

_TICK = 0.02
# How long a supervisor that was told to kill gets before all is killed around it.
_OBEY_SECONDS = 5.0
_UNSEEN = "nobody saw how it ended: its supervisor was killed, or the machine was restarted"


def kill(attempt: Attempt, started: Started, *, deadline: float) -> None:
    """End the runner and all below it, by its supervisor or without it; returns when nothing is left.

    `deadline` of time.monotonic(); raises TransientLaunchError where something still lives then.
    """
    if started.is_alive and process_table.signal_exactly(started.pid, started.started, KILL):
        for _ in _ticks(min(deadline, time.monotonic() + _OBEY_SECONDS)):
            if attempt.ended():
                return
            if not started.is_alive:
                break
    for _ in _ticks(deadline):
        if started.is_alive:
            _kill_around(started)
        elif settle(attempt) or attempt.started() is None:
            return
    raise TransientLaunchError(f"The process {started.pid} of {attempt.identity} cannot be ended.")


def _kill_around(started: Started) -> None:
    """Descendants first: without the supervisor, whose children they become one after the other, they would be lost."""
    below = process_table.descendants(started.pid)
    for row in below:
        process_table.signal_exactly(row.pid, row.started, signal.SIGKILL)
    if not below:
        process_table.signal_exactly(started.pid, started.started, signal.SIGKILL)


def settle(attempt: Attempt) -> Ended | None:
    """How an attempt ended whose supervisor is gone; where that could not say, what it left is ended now.

    None: another process is at it, or the end cannot be written down now.
    """
    try:
        with attempt.locked() as lock:
            ended = attempt.ended()
            if lock is None or ended:
                return ended
            started = attempt.started()
            if started is None:
                return None
            if started.boot == process_table.boot():
                end_marked(attempt)
            ended = Ended(None, _UNSEEN)
            attempt.write(ended)
    except OSError:
        return attempt.ended()
    attempt.clear_work(started.work)
    return ended


def end_marked(attempt: Attempt) -> None:
    """Kill all that carries the attempt's mark; again, because processes can be made faster than one look."""
    for _ in _ticks(time.monotonic() + _OBEY_SECONDS):
        rows = process_table.marked(str(attempt.folder))
        if not rows:
            return
        for row in rows:
            process_table.signal_exactly(row.pid, row.started, signal.SIGKILL)


def _ticks(deadline: float) -> Iterator[None]:
    """At least once, then again and again until the deadline."""
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(_TICK)

"""What has been asked of the running job: go on, cancel, or stop at once?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import IntEnum


class Halt(IntEnum):
    """What a running process has to face."""

    NONE = 0
    INTERRUPT = 1
    KILL = 2


class Control:
    """Written by heartbeat and signals, read by the job. Times are of time.monotonic()."""

    def __init__(self, *, grace: float) -> None:
        self.grace = grace
        self.cancel_reason: str | None = None
        self.force_at: float | None = None
        self.abandoned: str | None = None
        self.stopped: str | None = None
        self.changed = threading.Event()

    def cancel(self, reason: str, *, grace: float | None = None) -> None:
        """The server wants the job cancelled, and ends it without us after `grace` seconds. Repeats change nothing."""
        if self.cancel_reason is None:
            allowed = self.grace if grace is None else max(0.5, min(grace, self.grace))
            # A part of the grace is kept for sending the last lines and the end.
            self.force_at = time.monotonic() + allowed - min(10.0, allowed * 0.15)
            self.cancel_reason = reason
            self.changed.set()

    def abandon(self, why: str) -> None:
        """The job is no longer ours: its processes die, and nothing more is reported."""
        self.abandoned = self.abandoned or why
        self.changed.set()

    def stop(self, why: str) -> None:
        """The person at the runner gave up waiting: kill the job, report it cancelled."""
        self.stopped = self.stopped or why
        self.changed.set()

    @property
    def cancelled(self) -> bool:
        return self.cancel_reason is not None or self.stopped is not None

    @property
    def over(self) -> bool:
        """No process may run any more."""
        forced = self.force_at is not None and time.monotonic() >= self.force_at
        return forced or self.abandoned is not None or self.stopped is not None


class Guard:
    """May this piece of work go on? Deadlines are inherited from the enclosing work, cancelling is each piece's own.

    `survives` answers whether the step's `if` still holds once the job is cancelled (GitHub's rule for
    `if: always()` steps that are running when the cancel comes).
    """

    def __init__(
        self,
        control: Control,
        *,
        parent: Guard | None = None,
        seconds: float | None = None,
        survives: Callable[[], bool] = lambda: False,
    ) -> None:
        self._control = control
        self._parent = parent
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._survives = survives
        self._survived: bool | None = None

    @property
    def timed_out(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    @property
    def expired(self) -> bool:
        """This work's time, or that of any work around it, is used up."""
        return self.timed_out or (self._parent is not None and self._parent.expired)

    def cancels(self) -> bool:
        if not self._control.cancelled:
            return False
        if self._survived is None:
            self._survived = self._survives()
        return not self._survived

    def state(self) -> Halt:
        if self._control.over:
            return Halt.KILL
        if self.expired or self.cancels():
            return Halt.INTERRUPT
        return Halt.NONE

    def time_left(self) -> float | None:
        """Seconds until the server ends the job by force; None while nobody cancelled."""
        force_at = self._control.force_at
        return None if force_at is None else max(0.0, force_at - time.monotonic())

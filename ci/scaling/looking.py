"""What has become of the processes? Ends are noted, lost handles found again, and those that nobody knows are ended."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from ci.lifecycle import events, transitions
from ci.lifecycle.errors import LifecycleError
from ci.models import LaunchAttempt
from ci.scaling.launchers.protocol import Launcher, LaunchError, Process
from ci.scaling.starting import note

logger = logging.getLogger(__name__)

# How long a process may be without an open attempt before it counts as an orphan.
AGAIN_SECONDS = 1.0
UNTOLD = "its engine does not say how it ended"
BROKEN_OFF = "Its launch was broken off before its process was there."


class Orphans:
    """Processes of one launcher and this installation that belong to no open attempt, as one scaler has met them.

    Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._met: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._forgotten: set[str] = set()

    @property
    def known(self) -> set[str]:
        """Handles."""
        with self._lock:
            return {*self._met, *self._forgotten}

    def keep(self, handles: set[str]) -> None:
        """These are all that there are: nobody will meet another one again."""
        with self._lock:
            self._met = {handle: at for handle, at in self._met.items() if handle in handles}
            self._asked = {handle: at for handle, at in self._asked.items() if handle in handles}
            self._forgotten &= handles

    def meet(self, process: Process, launcher: Launcher) -> None:
        """Ask it to end when it is met again, for at first it may be ending anyhow; force it later on."""
        now = self._clock()
        with self._lock:
            if now - self._met.setdefault(process.handle, now) < AGAIN_SECONDS:
                return
            is_new = process.handle not in self._asked
            asked = self._asked.setdefault(process.handle, now)
        if is_new:
            logger.warning("process %s belongs to no runner any more: it is ended", process.identity)
            events.record("orphan_ended", detail=f"The process {process.identity} belonged to no runner any more.")
        force = now - asked >= settings.SCALE_STOP_SECONDS
        launcher.stop(process.handle, force=force)

    def forget(self, process: Process, launcher: Launcher) -> None:
        """Let the engine drop what it keeps of one that ended well, and whose end is noted; once. Of the others a
        person may want to see the remains: the launchers drop those later."""
        with self._lock:
            if process.handle in self._forgotten:
                return
            self._forgotten.add(process.handle)
        launcher.stop(process.handle, force=True)


def look(
    launcher: Launcher,
    *,
    kind: str,
    set_id: int | None,
    orphans: Orphans,
    is_starting: Callable[[int], bool] = lambda runner_id: False,
) -> None:
    """Compare the processes of a launcher of this kind with the attempts that are open.

    `set_id`: of this set; None: of all, also of those that are gone, and then only for processes that nobody knows.
    `is_starting`: whether this very process is about to start the runner. Raises LaunchError.
    """
    began = timezone.now()
    processes = launcher.list(set_id)
    if set_id is None:
        orphans.keep({process.handle for process in processes})
    # Read after the list: a process in it that has no open attempt here has none.
    found = LaunchAttempt.objects.filter(ended_at=None, runner__launcher=kind).select_related("runner")
    if set_id is not None:
        found = found.filter(runner__runner_set=set_id)
    attempts = {(attempt.runner_id, attempt.number): attempt for attempt in found.order_by("pk")}
    for process in processes:
        with _alone(process.identity):
            attempt = attempts.get((process.runner_id, process.attempt))
            if attempt is not None and attempt.handle in ("", process.handle):
                del attempts[process.runner_id, process.attempt]
                _found(process, attempt, launcher)
            elif process.state != "exited":
                orphans.meet(process, launcher)
            elif attempt is None and process.exit_code == 0:
                orphans.forget(process, launcher)
    for attempt in attempts.values() if set_id is not None else ():
        with _alone(str(attempt)):
            _missing(attempt, launcher, began, is_starting)


def _found(process: Process, attempt: LaunchAttempt, launcher: Launcher) -> None:
    if not attempt.handle:
        # Whoever started it was killed before the handle was saved.
        note(launcher, process.handle, runner_id=attempt.runner_id, attempt=attempt.number)
    if process.state == "exited":
        transitions.process_ended(
            runner_id=attempt.runner_id,
            attempt=attempt.number,
            exit_code=process.exit_code,
            # Only what no engine knows of any more has vanished.
            reason=process.reason or (UNTOLD if process.exit_code is None else ""),
        )


def _missing(attempt: LaunchAttempt, launcher: Launcher, began: datetime, is_starting: Callable[[int], bool]) -> None:
    runner = attempt.runner
    if not attempt.handle:
        # Until its call must have ended, it may still be coming.
        if not is_starting(runner.pk) and attempt.started_at + timedelta(seconds=settings.SCALE_START_SECONDS) <= began:
            reason = attempt.reason or BROKEN_OFF
            transitions.launch_failed(runner_id=runner.pk, attempt=attempt.number, reason=reason, retry_after=0)
        return
    # It may have been started after the list was made.
    process = launcher.poll(attempt.handle)
    if process is not None and process.state != "exited":
        return
    if process is not None:
        _found(process, attempt, launcher)
    elif runner.deleting_at is not None:
        transitions.process_stopped(runner_id=runner.pk, attempt=attempt.number)
    else:
        transitions.process_ended(runner_id=runner.pk, attempt=attempt.number, exit_code=None)


@contextlib.contextmanager
def _alone(what: str) -> Iterator[None]:
    """One that fails must not keep the others waiting. A database that is away fails them all."""
    try:
        yield
    except (OperationalError, InterfaceError):
        raise
    except (LifecycleError, LaunchError) as error:
        logger.warning("%s: %s", what, error)
    except Exception:
        logger.exception("%s could not be looked after", what)

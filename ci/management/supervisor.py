"""Who starts the children of `manage.py up`, keeps them running, and ends them in order?"""

import contextlib
import itertools
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

from ci.management.children import Child, Watched, last_lines
from ci.management.data_folder import DataFolder
from ci.management.progress import Progress
from ci.management.start_errors import CannotStart, StopRequested
from forge.child_processes import adopt_orphans, children_of, kill_orphans, reap_orphans

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK = 1.0  # seconds between looks at everything, where no signal comes
_HOUSEKEEPING = 60.0


class Supervisor:
    """Children in stages: started in order, ended in the opposite order, a stage at a time."""

    def __init__(self, folder: DataFolder, progress: Progress) -> None:
        self._folder, self._progress = folder, progress
        self._stages: list[list[Watched]] = []
        self._stopping = False
        self._strangers: set[int] = set()
        self._wakeup: int | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """While inside, signals are ours; on the way out, however, every child ends."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        self._wakeup = reader
        # An ignored SIGHUP stays ignored: that is what nohup is for.
        numbers = [number for number in _STOP_SIGNALS if number != signal.SIGHUP or not _is_ignored(number)]
        before = {number: signal.signal(number, self._on_stop) for number in numbers}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        old_wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._strangers = set(children_of(os.getpid()))
        adopt_orphans()
        try:
            yield
        finally:
            self._end_all()
            signal.set_wakeup_fd(old_wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reader)
            os.close(writer)

    def add(self, *children: Child) -> None:
        """Start a stage. Raises what the start raises, CannotStart where a program cannot be executed."""
        self.check()
        stage: list[Watched] = []
        self._stages.append(stage)
        for child in children:
            try:
                child.start()
            except OSError as error:
                raise CannotStart(f"{child.name} cannot be started: {error}.") from error
            stage.append(Watched(child))
        self._remember()

    def check(self) -> None:
        """Raises StopRequested where somebody asked for the end."""
        if self._stopping:
            raise StopRequested

    def wait_for(self, what: str, condition: Callable[[], bool], *, seconds: float, every: float = 0.1) -> None:
        """Look after the children until `condition` holds. Raises CannotStart when time is up, StopRequested."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise CannotStart(f"{what} did not come up within {seconds:g} s.")
            self._sleep(every)
            self._fail_on_early_end()

    def watch(self, finished: Callable[[], bool] = lambda: False, *, every: float = _TICK) -> None:
        """Keep the children running until `finished` or somebody asks for the end (StopRequested).

        Raises CannotContinue where a child ends again and again.
        """
        tidied = time.monotonic()
        while not finished():
            self._sleep(every)
            for watched in self._all():
                if line := watched.look(time.monotonic()):
                    self._progress.say(line)
                    self._remember()
            reap_orphans(self._strangers | set(self._pids()))
            if time.monotonic() - tidied > _HOUSEKEEPING:
                self._folder.rotate_logs()
                tidied = time.monotonic()

    def _fail_on_early_end(self) -> None:
        for watched in self._all():
            if watched.child.has_ended():
                child = watched.child
                raise CannotStart(
                    f"{child.name} ended while starting; the end of {child.log}:\n{last_lines(child.log)}"
                )

    def _sleep(self, seconds: float) -> None:
        self.check()
        if self._wakeup is not None and select.select([self._wakeup], [], [], seconds)[0]:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
        self.check()

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        if self._stopping:
            # Asked twice: no patience left, except for the database, which ends last and fast.
            for watched in itertools.chain(*self._stages[1:]):
                watched.child.kill()
        self._stopping = True

    def _end_all(self) -> None:
        for stage in reversed(self._stages):
            for watched in stage:
                watched.child.ask_to_end()
            for watched in stage:
                watched.child.end(time.monotonic() + 60)
        self._stages.clear()
        kill_orphans(keep=self._strangers)
        with contextlib.suppress(OSError):
            self._remember()

    def _all(self) -> Iterator[Watched]:
        yield from itertools.chain(*self._stages)

    def _pids(self) -> list[int]:
        return [watched.child.pid for watched in self._all() if watched.child.pid]

    def _remember(self) -> None:
        self._folder.remember_children(self._pids())


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN

"""Who is killed, and when? Both from the seed; each kill is printed with its moment, so that a failure can be read."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from forge.child_processes import start_time
from tests.e2e.product import START_SECONDS, Product, children_of, command_of

RUNNERS = 8
# `up` gives up on a child that ends five times within a minute: ours are fewer, for one end may cause another.
WINDOW = 60.0
MOST_IN_WINDOW = {"web": 3, "tasks": 2, "watch": 3, "database": 2, "runner": 2, "up": 1}
THAWED_AFTER = 4.0  # seconds that a runner stays frozen beyond the time after which it counts as lost


@dataclass(frozen=True)
class Kill:
    """Between `at` and `until`, seconds since the epoch. `runner`: who was hit, or whose step was."""

    at: float
    until: float
    kind: str
    pid: int
    runner: str = ""


class Processes:
    """The product's processes as they are now; never waits for one that is away."""

    def __init__(self, product: Product) -> None:
        self._product = product

    def child(self, part: str) -> int | None:
        """The child whose command line holds `part`."""
        known: dict[str, str] = json.loads((self._product.data / "children.json").read_text())
        # A number may be somebody else's by now: only the start time tells.
        alive = (int(pid) for pid, started in known.items() if start_time(int(pid)) == started)
        return next((pid for pid in alive if part in command_of(pid)), None)

    def below(self, part: str, word: str) -> list[int]:
        parent = self.child(part)
        return sorted(pid for pid in _children(parent) if word in command_of(pid))

    def tasks_guard(self) -> list[int]:
        return self.below("qcluster", "qcluster")

    def tasks_workers(self) -> list[int]:
        return sorted(pid for guard in self.tasks_guard() for pid in _children(guard))

    def runner(self, name: str) -> int | None:
        return self.child(f"runners/{name.removeprefix('runner-')}/")

    def steps(self, name: str) -> list[int]:
        """The shells that this runner has started, each the leader of its group."""
        return sorted(pid for pid in _children(self.runner(name)) if "bash" in command_of(pid) and _leads(pid))


def _leads(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def _children(parent: int | None) -> list[int]:
    return children_of(parent) if parent is not None else []


NAMES = [f"runner-{number}" for number in range(1, RUNNERS + 1)]
# kind: (which limit counts it, weight)
KINDS = {
    "a web worker": ("web", 4),
    "all of web": ("web", 3),
    "a task worker": ("tasks", 2),
    "the guard of the task workers": ("tasks", 1),
    "all of qcluster": ("tasks", 1),
    "watch": ("watch", 3),
    "a database connection": ("database", 2),
    "the database": ("database", 2),
    "a runner": ("runner", 8),
    "a step": ("", 3),
    "a runner, frozen": ("runner", 1),
    "manage.py up": ("up", 2),
    "everything": ("up", 2),
}
RESTARTS = ("manage.py up", "everything")  # what nobody but an operator starts again


class Killer:
    """Kills in a thread of its own, from `start` on for `seconds` or until `stop`, about every `pace` seconds.

    `restarts`: `manage.py up` itself is killed too, alone or with all its children, and started again.
    """

    def __init__(
        self,
        product: Product,
        seed: int,
        *,
        say: Callable[[str], None],
        lost_after: float,
        pace: float,
        seconds: float,
        restarts: bool = False,
    ) -> None:
        self.kills: list[Kill] = []
        self._product, self._processes, self._say = product, Processes(product), say
        self._lost_after, self._pace, self._seconds, self._restarts = lost_after, pace, seconds, restarts
        self._random = random.Random(f"kills {seed}")
        self._recent: dict[str, deque[float]] = {}
        self._frozen: list[tuple[float, int]] = []
        self._began = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="killer", daemon=True)
        self._failure: BaseException | None = None

    @property
    def counts(self) -> Counter[str]:
        return Counter(kill.kind for kill in self.kills)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No kill comes after this, and nobody is frozen any more. Raises what the killer itself stumbled over."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join(START_SECONDS)
        self._thaw(everybody=True)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self) -> None:
        until = time.monotonic() + self._seconds
        try:
            while not self._done.wait(self._pause()):
                self._thaw()
                if time.monotonic() < until:
                    self._strike()
        except BaseException as error:
            self._failure = error

    def _pause(self) -> float:
        """Now and then none: two at once find what one alone does not."""
        pause = self._random.uniform(0.3, 1.7) * self._pace
        return pause if self._random.random() < 0.8 else 0.0

    def _strike(self) -> None:
        # All chances are taken whether or not they are used: a round that goes otherwise keeps its sequence.
        kinds = [kind for kind in KINDS if self._restarts or kind not in RESTARTS]
        kind = self._random.choices(kinds, [KINDS[kind][1] for kind in kinds])[0]
        order = self._random.sample(NAMES, len(NAMES))
        place = self._random.random()
        limit = KINDS[kind][0]
        if kind in ("a runner", "a step", "a runner, frozen"):
            self._strike_runner(kind, order)
            return
        if kind in RESTARTS:
            if self._may(limit):
                self._restart(kind)
            return
        victims = self._victims(kind)
        if victims and self._may(limit):
            self._kill(kind, victims[int(place * len(victims))])

    def _victims(self, kind: str) -> list[int]:
        found = self._processes
        if kind == "a web worker":
            return found.below("uvicorn", "multiprocessing")
        if kind == "a task worker":
            return found.tasks_workers()
        if kind == "the guard of the task workers":
            return found.tasks_guard()
        if kind == "a database connection":
            return found.below("postgres", "forge")
        part = {"all of web": "uvicorn", "all of qcluster": "qcluster", "watch": "manage.py watch"}.get(
            kind, "postgres"
        )
        return _present([found.child(part)])

    def _strike_runner(self, kind: str, order: list[str]) -> None:
        """The first in order that has a job; an idle one, for a kill, where none has."""
        busy = {name: steps for name in order if (steps := self._processes.steps(name))}
        if kind == "a step":
            for name, steps in busy.items():
                self._kill(kind, steps[0], runner=name, group=True)
                return
            return
        for name in [*busy, *order]:
            pid = self._processes.runner(name)
            if pid is not None and pid not in [frozen for _, frozen in self._frozen] and self._may(name):
                self._kill(kind, pid, runner=name, freeze=kind == "a runner, frozen")
                return

    def _restart(self, kind: str) -> None:
        at = time.time()
        self._say(f"{time.monotonic() - self._began:6.2f} s  {kind}")
        if kind == "everything":
            self._product.cut_power()
        else:
            self._product.kill()
        self._product.start()
        # Of the children that outlived it some are killed only now.
        self.kills.append(Kill(at, time.time() + START_SECONDS, kind, 0))
        self._product.wait_until_printed("Ctrl-C stops it")
        self.kills[-1] = replace(self.kills[-1], until=time.time())
        self._say(f"{time.monotonic() - self._began:6.2f} s  it runs again")
        self._frozen.clear()
        # A new supervisor counts anew.
        self._recent = {limit: times for limit, times in self._recent.items() if limit == "up"}

    def _may(self, limit: str) -> bool:
        """Whether its child may end once more within the window; counts it."""
        now = time.monotonic()
        recent = self._recent.setdefault(limit, deque())
        while recent and recent[0] < now - WINDOW:
            recent.popleft()
        if len(recent) >= MOST_IN_WINDOW.get(limit, MOST_IN_WINDOW["runner"]):
            return False
        recent.append(now)
        return True

    def _kill(self, kind: str, pid: int, *, runner: str = "", group: bool = False, freeze: bool = False) -> None:
        at = time.time()
        try:
            if group:
                os.killpg(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGSTOP if freeze else signal.SIGKILL)
        except ProcessLookupError:
            return
        if freeze:
            self._frozen.append((time.monotonic() + self._lost_after + THAWED_AFTER, pid))
        self.kills.append(Kill(at, time.time(), kind, pid, runner))
        self._say(f"{time.monotonic() - self._began:6.2f} s  {kind} ({runner or 'process'} {pid})")

    def _thaw(self, *, everybody: bool = False) -> None:
        now = time.monotonic()
        for until, pid in [one for one in self._frozen if everybody or one[0] <= now]:
            self._frozen.remove((until, pid))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _present(found: Iterable[int | None]) -> list[int]:
    return [pid for pid in found if pid is not None]

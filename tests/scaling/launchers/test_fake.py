"""Does the launcher that most tests of sets stand on keep to the protocol, as the real ones do?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from ci.scaling.launchers.protocol import Launch, Launcher, PermanentLaunchError, Process
from tests.scaling.fake_launcher import FakeLauncher
from tests.scaling.launchers.contract import INSTALLATION, Bench, LauncherContract, Seen, Work

ENDS = {
    Work.SUCCEED: (0, ""),
    Work.FAIL: (3, "exit code 3: no route to host"),
    Work.OUTDATED: (7, "this version of the runner is outdated (exit code 7)"),
    Work.OUT_OF_MEMORY: (137, "out of memory (exit code 137)"),
}


class Played(FakeLauncher):
    """Its processes do what their templates say, at once."""

    def start(self, launch: Launch) -> str:
        work = Work[launch.template["work"]]
        if work is Work.IMPOSSIBLE:
            raise PermanentLaunchError("no such image")
        handle = super().start(launch)
        if work in ENDS and handle in self.running:
            self.end(handle, *ENDS[work])
        return handle

    def stop(self, handle: str, *, force: bool) -> None:
        started = self.started.get(handle)
        self.stubborn = started is not None and started.launch.template["work"] == Work.STUBBORN.name
        super().stop(handle, force=force)


class View:
    """One launcher of several on the same engine."""

    def __init__(self, engine: Played, installation: str) -> None:
        self.start, self.poll, self.stop = engine.start, engine.poll, engine.stop
        self._engine, self._installation = engine, installation

    def list(self, set_id: int | None = None) -> list[Process]:
        found = self._engine.list(set_id)
        return [one for one in found if self._engine.started[one.handle].launch.installation == self._installation]


class FakeBench(Bench):
    def __init__(self) -> None:
        self.engine = Played()

    def launcher(self, *, installation: str = INSTALLATION, limit: float | None = None) -> Launcher:
        return View(self.engine, installation)

    def template(self, work: Work) -> dict[str, Any]:
        return {"work": work.name}

    def seen(self, handle: str) -> Seen:
        return Seen(self.engine.started[handle].launch.environment(), "nothing but memory")

    def count(self, identity: str) -> int:
        return sum(process.identity == identity for process in self.engine.list())

    def alive(self, handle: str) -> int:
        if handle not in self.engine.running:
            return 0
        return 2 if self.engine.started[handle].launch.template["work"] == Work.STUBBORN.name else 1

    def replace(self, handle: str) -> Callable[[], bool]:
        old = self.engine.started[handle].launch
        self.engine.lose(handle)
        other = self.engine.start(replace(old, installation="elsewhere"))
        return lambda: other in self.engine.running

    def lose(self, handle: str) -> None:
        self.engine.lose(handle)

    @contextlib.contextmanager
    def unable(self) -> Iterator[None]:
        self.engine.away = True
        yield
        self.engine.away = False

    def hanging(self, handle: str | None) -> AbstractContextManager[None]:
        """It does not let anybody wait for the limit."""
        return self.unable()


class TestFake(LauncherContract):
    @pytest.fixture
    def bench(self) -> Bench:
        return FakeBench()

"""A forge in memory and real runner processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runner.fake_server import REGISTRATION, FakeJob, FakeServer

ROOT = Path(__file__).resolve().parents[2]


class Runners:
    """Runner processes of one test, each started as a person would."""

    def __init__(self, server: FakeServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.config = folder / "runner.json"
        self.work = folder / "work"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.env = {**os.environ, "PYTHONPATH": str(ROOT), "RUNNER_OWN_SECRET": "not-for-jobs"}

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ci.runner", *args],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def register(self, *args: str) -> None:
        done = self.command(
            "register",
            "--url",
            self.server.url,
            "--token",
            REGISTRATION,
            "--name",
            "alpha",
            "--config",
            str(self.config),
            *args,
        )
        assert done.returncode == 0, done.stderr

    def enroll(self, **more: Any) -> None:
        """Write what registering would have written, without the cost of a process."""
        token, labels = "frr_enrolled", ["self-hosted", "linux"]
        self.server.runners[token] = {"id": 1, "name": "alpha", "labels": labels, "ephemeral": False}
        body = {"url": self.server.url, "id": 1, "name": "alpha", "token": token, "labels": labels, **more}
        self.config.write_text(json.dumps(body))

    def start(self, command: str = "once", *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        if not self.config.exists():
            self.enroll()
        process = subprocess.Popen(
            [sys.executable, "-m", "ci.runner", command, "--config", str(self.config), "--work", str(self.work), *args],
            env={**self.env, **(env or {})},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "runner.log").open("ab"),
        )
        self.processes.append(process)
        return process

    @property
    def log(self) -> str:
        return (self.folder / "runner.log").read_text()

    def run(self, job: FakeJob, *, env: dict[str, str] | None = None, seconds: float = 120) -> FakeJob:
        """Run this one job with a real `once`, to its end."""
        process = self.start("once", env=env)
        assert process.wait(seconds) == 0, self.log
        assert job.state == "ended", self.log
        return job

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()
                process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    repositories = tmp_path / "repositories"
    repositories.mkdir()
    fake = FakeServer(repositories)
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def runners(server: FakeServer, tmp_path: Path) -> Iterator[Runners]:
    started = Runners(server, tmp_path)
    yield started
    started.close()

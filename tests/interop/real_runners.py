"""How do the tests run the runners of Forgejo and of Gitea themselves? In host mode, as an operator sets them up.

The programs are not part of this project. FORGEJO_RUNNER and GITEA_RUNNER name them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.product import children_of, command_of

VARIABLES = {"forgejo": "FORGEJO_RUNNER", "gitea": "GITEA_RUNNER"}
STOP_SECONDS = 120
_CALL_SECONDS = 120
# What both read; each skips what only the other one knows.
_SETTINGS = """
log:
  level: info
runner:
  file: {folder}/.runner
  capacity: 1
  shutdown_timeout: 60s
  fetch_interval: 1s
  report_interval: 1s
  log_report_interval: 1s
  state_report_interval: 1s
  labels: {labels}
cache:
  enabled: false
host:
  workdir_parent: {folder}/work
"""


class RealRunner:
    """One installed runner: its folder with its settings and what it knows of itself, and its process while it runs."""

    def __init__(self, kind: str, program: str, folder: Path, *, label: str) -> None:
        self.kind, self.name, self._program, self._folder = kind, f"{kind}-{folder.name}"[:60], program, folder
        (folder / "work").mkdir(parents=True)
        (folder / "home").mkdir()
        self._label = f"{label}:host"
        self._config = folder / "config.yaml"
        self._config.write_text(_SETTINGS.format(folder=folder, labels=json.dumps([self._label])))
        self._log = folder / "log"
        self._processes: list[subprocess.Popen[bytes]] = []

    def register(self, url: str, token: str, *words: str) -> None:
        """By a registration token."""
        given = ("--no-interactive", "--instance", url, "--token", token, "--name", self.name)
        self._call("register", *given, "--labels", self._label, *words)

    def set_up_offline(self, url: str, secret: str) -> None:
        """By a secret that the server was told too; the server is not asked."""
        self._call("create-runner-file", "--instance", url, "--secret", secret, "--name", self.name)

    @property
    def identity(self) -> dict[str, Any]:
        """What the runner has written down of itself."""
        return dict(json.loads((self._folder / ".runner").read_text()))

    def start(self, command: str = "daemon", *words: str) -> RealRunner:
        with self._log.open("ab") as output:
            process = subprocess.Popen(
                self._words(command, *words),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        return self

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """The exit status, once it has ended by itself."""
        try:
            return self._processes[-1].wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it still runs after {seconds} s\n{self.said()}") from None

    def ask_to_end(self) -> None:
        """A job in hand goes on for a minute."""
        self._processes[-1].send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """As a power cut does it: the runner, and what runs for its job."""
        for process in self._processes:
            doomed = [process.pid, *_below(process.pid)] if process.poll() is None else []
            for pid in doomed:
                if command_of(pid):
                    os.kill(pid, signal.SIGKILL)
            process.wait(STOP_SECONDS)

    def said(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def version(self) -> str:
        """As the program says it."""
        return self._call("--version")

    def knows(self, command: str, option: str) -> bool:
        return option in self._call(command, "--help")

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            self._words(*words),
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_CALL_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{self.kind} {words[0]}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def _words(self, command: str, *words: str) -> Sequence[str]:
        return [self._program, "--config", str(self._config), command, *words]

    @property
    def _environment(self) -> dict[str, str]:
        """Jobs inherit it: nothing of this session's settings."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(self._folder / "home"), "FORGE_TEST_RUNNER": self.name}


def _below(pid: int) -> list[int]:
    found = children_of(pid)
    return found + [deeper for child in found for deeper in _below(child)]

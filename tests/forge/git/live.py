"""A forge that runs: the real server process on the test session's database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from tests.ports import reserve_port

ROOT = Path(__file__).parents[3]


class LiveForge:
    """One uvicorn process. `variables` go to its environment."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.log = folder / "server.log"
        self.variables = variables
        self.process: subprocess.Popen[bytes] | None = None
        self.port = reserve_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def address(self, path: str, user: str = "", password: str = "") -> str:
        credentials = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
        return f"http://{credentials}127.0.0.1:{self.port}/{path}"

    def start(self) -> LiveForge:
        command = [sys.executable, "-m", "uvicorn", "forge.asgi:application", "--port", str(self.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--loop", "uvloop", "--http", "httptools", "--timeout-graceful-shutdown", "5"],
                cwd=ROOT,
                env=self._environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_answer()
        return self

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise

    def kill(self) -> None:
        """As a power cut would: SIGKILL, and nothing of it is left to clean up after itself."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def _environment(self) -> dict[str, str]:
        database = connection.settings_dict
        return {
            **os.environ,
            "DATABASE_URL": database_url(database),
            "FORGE_DATA": str(settings.DATA_DIR),
            "FORGE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "tests.forge.git.live_settings",
            **self.variables,
        }

    def _await_answer(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process is not None and self.process.poll() is None, self.log.read_text()
            try:
                urllib.request.urlopen(f"{self.url}/-/-/info/refs", timeout=20)
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError(self.log.read_text())


def database_url(database: dict[str, Any]) -> str:
    user, host, name = database["USER"], str(database["HOST"]), database["NAME"]
    if host.startswith("/"):
        return f"postgres://{user}@/{quote(host)}/{name}"
    return f"postgres://{user}:{quote(database['PASSWORD'], safe='')}@{host}:{database['PORT'] or 5432}/{name}"

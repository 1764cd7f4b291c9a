"""How do the tests of the waiting calls run the real server, and look into its process?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from django.db import connection

from tests.ports import reserve_port

ROOT = Path(__file__).resolve().parent.parent.parent
_PATIENCE = 60.0


class Server:
    """uvicorn on the test's database, as a process of its own."""

    def __init__(self, log: Path, *, host: str = "127.0.0.1", **environment: str) -> None:
        self.port = reserve_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.public_url = f"http://{host}:{self.port}"  # as it calls itself
        self.is_ending = False
        self._log = log
        command = [sys.executable, "-m", "uvicorn", "forge.asgi:application", "--port", str(self.port)]
        command += ["--no-access-log", "--backlog", "8192"]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "DATABASE_URL": database_url(), "FORGE_URL": self.public_url, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Server:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                httpx.get(f"{self.url}/api/runner/v1/runners/self", timeout=10)
                return self
            except httpx.TransportError:
                time.sleep(0.05)
        self.kill()
        raise AssertionError(f"the server did not start: {self._log.read_text()}")

    def __exit__(self, *error: object) -> None:
        self.kill()

    def terminate(self) -> None:
        """It ends in its own time: whoever wants a server from now on needs another one."""
        self.is_ending = True
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def threads(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("Threads:")[2].split()[0])

    @property
    def log(self) -> str:
        return self._log.read_text()


def database_url() -> str:
    """The test's own database, for other processes."""
    given = connection.get_connection_params()
    user = given.get("user", "")
    password = f":{quote(given['password'])}" if given.get("password") else ""
    host, name = str(given.get("host", "")), given["dbname"]
    if host.startswith("/"):
        return f"postgres://{user}{password}@/{quote(host)}/{name}"  # a socket, as django-environ writes it
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgres://{user}{password}@{host}{port}/{name}"


def connections() -> int:
    """Client connections to the test's database, this one left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return cursor.fetchone()[0]


def until(true: Any, *, what: str, seconds: float = _PATIENCE) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)

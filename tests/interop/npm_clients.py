"""How do the tests drive GitHub's own clients? As node processes with the packages of tests/interop/npm."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NPM = Path(__file__).resolve().parent / "npm"
_INSTALL_SECONDS = 600


class ClientError(Exception):
    """The client threw this; `kind` is the name of its class."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def install() -> Path:
    """A folder with the packages that the lock file names, made at the first need and kept for later sessions."""
    assert shutil.which("npm"), "node and npm are missing: install Node.js 20 or newer"
    lock = (NPM / "package-lock.json").read_bytes()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forge-ci-tests"
    caches.mkdir(parents=True, exist_ok=True)
    folder = caches / f"npm-{hashlib.sha256(lock).hexdigest()[:16]}"
    with (caches / "npm.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # the workers of a session come at once
        if not folder.is_dir():
            _install(folder)
    return folder


def _install(folder: Path) -> None:
    making = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(NPM / name, making)
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"],
        cwd=making,
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"npm ci failed:\n{done.stderr}"
    making.rename(folder)


class NpmClient:
    """One client, by the name that package.json gives it, in a process of its own."""

    def __init__(self, package: str, *, installed: Path, folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(NPM / "drive.mjs", folder)
        (folder / "package.json").write_text('{"type": "module"}')
        # A module finds its packages beside itself.
        (folder / "node_modules").symlink_to(installed / "node_modules")
        self._log = folder / "log"
        self._results, writing = os.pipe()
        self._unread = b""
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                ["node", str(folder / "drive.mjs"), package, str(writing)],
                cwd=folder,
                env={**_plain_environment(), **environment},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing],
            )
        os.close(writing)

    def __enter__(self) -> NpmClient:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._results)

    def call(
        self,
        method: str,
        *arguments: Any,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        seconds: float = 300,
    ) -> Any:
        """What the client's method returns. `env` is set, or with None unset, for this and later calls.

        Raises ClientError where it throws.
        """
        asked = {"method": method, "args": arguments, "env": dict(env or {}), "cwd": str(cwd) if cwd else None}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._line(method, seconds))
        if "error" in answer:
            raise ClientError(answer["error"], answer["kind"])
        return answer["result"]

    @property
    def log(self) -> str:
        """All that the client has said, in all of its calls."""
        return self._log.read_text(errors="replace")

    def _line(self, method: str, seconds: float) -> bytes:
        until = time.monotonic() + seconds
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._results], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"{method} did not end within {seconds} s:\n{self.log[-4000:]}"
            piece = os.read(self._results, 65536)
            assert piece, f"node ended in {method}:\n{self.log[-4000:]}"
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line


def _plain_environment() -> dict[str, str]:
    """Without what would tell the clients that they run in some other CI."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GITHUB_", "ACTIONS_", "RUNNER_", "FORGEJO_", "GITEA_"))
    }

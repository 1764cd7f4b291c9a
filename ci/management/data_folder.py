"""Is the data folder fit to start on, and ours alone?"""

import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from ci.management.start_errors import CannotStart
from forge.child_processes import start_time

_MEBIBYTE = 1024 * 1024
MINIMUM_FREE = 200 * _MEBIBYTE
_CHECK_BYTES = b"\0" * 65536
_LOG_LIMIT = 10 * _MEBIBYTE


class DataFolder:
    """Everything one installation keeps; at most one `up` holds it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.git = self.path / "git"
        self.blobs = self.path / "blobs"
        self.runners = self.path / "runners"
        self.logs = self.path / "logs"
        self._lock: int | None = None

    def prepare(self, minimum_free: int = MINIMUM_FREE) -> None:
        """Make the folder and its parts. Raises CannotStart where it is read-only, no folder, or full."""
        try:
            if not self.path.exists():
                self.path.mkdir(parents=True)
                # Others may pass but not list: as root, the database runs as a user of its own below it.
                self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
            self._check_free(minimum_free)
            with tempfile.TemporaryFile(dir=self.path) as file:
                file.write(_CHECK_BYTES)
            # static: empty unless collectstatic is used, but the web server warns where it is missing.
            for part in (self.git, self.blobs, self.runners, self.logs, self.path / "static"):
                part.mkdir(mode=0o700, exist_ok=True)
                if not os.access(part, os.W_OK | os.X_OK):
                    raise PermissionError(f"Permission denied: {part}")
        except OSError as error:
            reason = error.strerror or str(error)
            raise CannotStart(
                f"The data folder {self.path} cannot be written ({reason}): "
                "make it writable or choose another with --data."
            ) from error

    def _check_free(self, minimum_free: int) -> None:
        free = shutil.disk_usage(self.path).free
        if free < minimum_free:
            raise CannotStart(
                f"The disk of the data folder {self.path} is full ({free // _MEBIBYTE} MiB free, "
                f"{minimum_free // _MEBIBYTE} MiB needed): free some space or choose another folder with --data."
            )

    def lock(self, holder: str) -> None:
        """Hold the folder until this process ends; `holder` tells others who does. Raises CannotStart where held."""
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(self._lock, 500, 0).decode(errors="replace").strip() or "another process"
            raise CannotStart(f"Forge CI already runs on {self.path}: {owner}.") from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, holder.encode(), 0)

    def rotate_logs(self) -> None:
        """Keep one earlier part of every log that has grown past 10 MiB; processes go on appending to the same file."""
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > _LOG_LIMIT:
                shutil.copyfile(log, log.with_suffix(".log.1"))
                os.truncate(log, 0)

    def remember_children(self, pids: list[int]) -> None:
        """Note who belongs to us, for the next start after a SIGKILL or a power cut of us."""
        known = {str(pid): started for pid in pids if (started := start_time(pid)) is not None}
        draft = self.path / "children.new"
        draft.write_text(json.dumps(known))
        draft.replace(self.path / "children.json")

    def end_left_over_children(self) -> int:
        """Kill what a killed `up` left running on this folder, which must be locked; returns how many there were."""
        try:
            known = json.loads((self.path / "children.json").read_text())
        except (OSError, ValueError):
            return 0
        alive = [int(pid) for pid, started in known.items() if start_time(int(pid)) == started]
        for pid in alive:
            try:
                os.killpg(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        until = time.monotonic() + 5
        while time.monotonic() < until and any(start_time(pid) for pid in alive):
            time.sleep(0.02)
        return len(alive)

"""What is kept on disk of one attempt to run a local runner? A folder, written so that a crash leaves no half."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from ci.scaling.launchers import process_table
from ci.scaling.launchers.protocol import Process, State, read_identity

DOOMED = ".removed-"
_MACHINE = "machine"
_LOG_BYTES = 512 * 1024
_MOST_STATE_BYTES = 64 * 1024


@dataclass(frozen=True)
class Started:
    """The supervisor of the runner's process, and where its runner works."""

    pid: int
    started: str
    boot: str
    state: State
    work: str

    @property
    def is_alive(self) -> bool:
        return self.boot == process_table.boot() and process_table.is_alive(self.pid, self.started)


@dataclass(frozen=True)
class Ended:
    """How the runner's process ended; `exit_code` None: nobody saw it."""

    exit_code: int | None
    reason: str


_Kept = TypeVar("_Kept", Started, Ended)


def machine(root: Path) -> str:
    """The name of the machine whose processes are kept below this folder, as their handles have it; "" where none ever
    was. A name made up once: that of a host may change, and be given to another."""
    with contextlib.suppress(OSError):
        return (root / _MACHINE).read_text()
    return ""


def name_machine(root: Path) -> None:
    """Give it its name, unless it has one. Raises OSError."""
    if machine(root):
        return
    draft = root / f".{_MACHINE}-{os.getpid()}-{time.monotonic_ns()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(8))
        file.flush()
        os.fsync(file.fileno())
    # Whole from the start, and by whoever is first.
    with contextlib.suppress(FileExistsError):
        os.link(draft, root / _MACHINE)
    draft.unlink()


class Attempt:
    """The folder of one identity. Its lock is held by whoever starts it and then, for life, by its supervisor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.identity = folder.name
        self.log = folder / "output.log"
        self._lock = folder / "lock"
        self._started = folder / "started.json"
        self._ended = folder / "ended.json"

    def started(self) -> Started | None:
        return _read(self._started, Started)

    def ended(self) -> Ended | None:
        return _read(self._ended, Ended)

    def write(self, kept: Started | Ended) -> None:
        """Replace what was known. Raises OSError."""
        path = self._started if isinstance(kept, Started) else self._ended
        draft = path.with_suffix(f".{os.getpid()}")
        with draft.open("w") as file:
            json.dump(asdict(kept), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def handle(self, started: Started) -> str:
        return f"{self.identity}:{started.pid}:{started.started}:{machine(self.folder.parent.parent)}"

    def process(self, started: Started, ended: Ended | None) -> Process:
        set_id, runner_id, number = read_identity(self.identity) or (0, 0, 0)
        return Process(
            identity=self.identity,
            handle=self.handle(started),
            set_id=set_id,
            runner_id=runner_id,
            attempt=number,
            state="exited" if ended else started.state,
            exit_code=ended.exit_code if ended else None,
            reason=ended.reason if ended else "",
        )

    def touched_at(self) -> float:
        """Seconds since the epoch of the last change; 0 where there is nothing."""
        for path in (self._ended, self._started, self.folder):
            with contextlib.suppress(OSError):
                return path.stat().st_mtime
        return 0.0

    @contextlib.contextmanager
    def locked(self) -> Iterator[int | None]:
        """The lock's descriptor, for a child to inherit; None where another holds it, or there is no folder.

        Raises OSError.
        """
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            yield None
            return
        try:
            yield descriptor if self._is_taken(descriptor) else None
        finally:
            os.close(descriptor)

    def _is_taken(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A tidier may have removed the folder in between: then this is the lock of nothing.
            return os.path.samestat(os.fstat(descriptor), os.stat(self._lock))
        except OSError:
            return False

    def append(self, data: bytes) -> None:
        """To the log, of which the last half megabyte to a megabyte is kept. A full disk loses lines, no more."""
        with contextlib.suppress(OSError):
            if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
                self.log.replace(self.log.with_suffix(".log.1"))
            with self.log.open("ab") as file:
                file.write(data)

    def clear_work(self, work: str) -> None:
        """Remove the runner's work folder, and no other that the state may name by mistake."""
        path = Path(work)
        if path == self.folder / "work" or path.name.startswith(f"{self.identity}-"):
            remove_tree(path)

    def remove(self) -> None:
        """Everything, at once for all who look. What a crash leaves has a name that the next tidying knows."""
        if started := self.started():
            self.clear_work(started.work)
        doomed = self.folder.with_name(f"{DOOMED}{self.identity}-{os.getpid()}-{time.monotonic_ns()}")
        with contextlib.suppress(OSError):
            self.folder.replace(doomed)
            remove_tree(doomed)


def remove_tree(path: Path) -> None:
    """A folder of ours, also where a job made parts of it read-only. Nothing outside of it is touched."""

    def again(function: Any, name: str, problem: Any) -> None:
        inside = Path(name) != path
        with contextlib.suppress(OSError):
            if inside:  # the folder around `path` is not ours to change
                os.chmod(os.path.dirname(name), 0o700)
            if not os.path.islink(name):
                os.chmod(name, 0o700)
            function(name)

    for _ in range(3):
        if path.is_symlink() or not path.exists():
            return
        shutil.rmtree(path, onerror=again)


def _read(path: Path, shape: type[_Kept]) -> _Kept | None:
    """None where it was never written, or the file is none of ours."""
    try:
        with path.open() as file:
            return shape(**json.loads(file.read(_MOST_STATE_BYTES)))
    except (OSError, ValueError, TypeError):
        return None

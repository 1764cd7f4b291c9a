"""What can a test do to local processes, beside and behind the launcher's back?"""

from __future__ import annotations

import contextlib
import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from ci.scaling.launchers import process_table
from ci.scaling.launchers.local import ROOT, LocalLauncher
from ci.scaling.launchers.local_attempt import Attempt
from ci.scaling.launchers.protocol import Launch, TransientLaunchError
from forge.child_processes import start_time
from tests.scaling.launchers.contract import INSTALLATION, Bench, Seen, Work, until

WORKLOAD = (sys.executable, str(Path(__file__).with_name("workload.py")))
WORDS = {
    Work.LONG: "long",
    Work.STUBBORN: "stubborn",
    Work.SUCCEED: "exit 0",
    Work.FAIL: "fail 3",
    Work.OUTDATED: "exit 7",
    Work.OUT_OF_MEMORY: "memory",
}


def doing(words: str, **more: Any) -> dict[str, Any]:
    return {"environment": {"WORKLOAD": words}, **more}


class LocalBench(Bench):
    hangs: ClassVar[tuple[str, ...]] = ("start",)  # the other calls ask files and the process table, not an engine

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.others: list[subprocess.Popen[bytes]] = []
        self.pids: dict[str, dict[int, str]] = {}

    def launcher(self, *, installation: str = INSTALLATION, limit: float | None = None, **more: Any) -> LocalLauncher:
        given = {"limit": limit} if limit else {}
        return LocalLauncher(self.folder, installation=installation, command=WORKLOAD, **given, **more)

    def template(self, work: Work) -> dict[str, Any]:
        if work is Work.IMPOSSIBLE:
            return {"image": "busybox"}
        return doing(WORDS[work], **({"memory_mib": 64} if work is Work.OUT_OF_MEMORY else {}))

    def attempt(self, handle: str) -> Attempt:
        (folder,) = self.folder.glob(f"*/{handle.partition(':')[0]}")
        return Attempt(folder)

    def told(self, handle: str) -> dict[str, Any]:
        path = self.attempt(handle).folder / "work-seen.json"
        until(path.exists, "what the process sees")
        told: dict[str, Any] = json.loads(path.read_text())
        known = {pid: start_time(pid) for pid in told["pids"]}
        self.pids.setdefault(handle, {pid: started for pid, started in known.items() if started})
        return told

    def seen(self, handle: str) -> Seen:
        told = self.told(handle)
        pids = [*self.pids[handle], int(handle.split(":")[1])]
        lines = [Path(f"/proc/{pid}/cmdline").read_text() for pid in pids]
        return Seen(environment=told["environment"], command_lines="\n".join(lines))

    def count(self, identity: str) -> int:
        found = 0
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                found += b"ci.scaling.launchers.shim" in words and any(
                    w.endswith(f"/{identity}".encode()) for w in words
                )
        ended = sum(1 for path in self.folder.glob(f"*/{identity}") if Attempt(path).ended())
        return max(found, ended)

    def alive(self, handle: str) -> int:
        if handle not in self.pids:
            self.told(handle)
        return sum(start_time(pid) == started for pid, started in self.pids[handle].items())

    def end(self, handle: str) -> None:
        """The supervisor and all below it, as a crash does; returns when they are gone."""
        pid = int(handle.split(":")[1])
        rows = [*process_table.descendants(pid), process_table.Row(pid, 0, start_time(pid) or "")]
        for row in reversed(rows):
            process_table.signal_exactly(row.pid, row.started, signal.SIGKILL)
        until(lambda: not any(process_table.is_alive(row.pid, row.started) for row in rows), "their end")

    def other(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        self.others.append(process)
        return process

    def replace(self, handle: str) -> Callable[[], bool]:
        """Its name: the number follows below, where the handle can be made to fit."""
        self.end(handle)
        attempt, other = self.attempt(handle), self.other()
        known = json.loads((attempt.folder / "started.json").read_text())
        (attempt.folder / "started.json").write_text(
            json.dumps({**known, "pid": other.pid, "started": start_time(other.pid)})
        )
        return lambda: other.poll() is None

    def lose(self, handle: str) -> None:
        self.end(handle)
        self.attempt(handle).remove()

    @contextlib.contextmanager
    def unable(self) -> Iterator[None]:
        """A file stands where the folder must be made: root, too, can make none there."""
        assert not self.folder.exists()
        self.folder.write_text("")
        yield
        self.folder.unlink()

    @contextlib.contextmanager
    def hanging(self, handle: str | None) -> Iterator[None]:
        """Another start of the identity that the suite tries next holds its lock, and comes to no end."""
        (root,) = [path for path in self.folder.iterdir() if path.is_dir()]
        other = root / "forge-4-2-1"
        other.mkdir()
        with (other / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def start_and_die(self, wanted: Launch) -> None:
        start_in_another_process(self.folder, wanted, die="_line")

    def close(self) -> None:
        for path in self.folder.glob("*/forge-*"):
            if started := Attempt(path).started():
                with contextlib.suppress(TransientLaunchError):
                    self.launcher().stop(Attempt(path).handle(started), force=True)
        for process in self.others:
            process.kill()
            process.wait()


KILLED_SCALER = """
import json, os, signal, sys
from pathlib import Path
from ci.scaling.launchers import local
from ci.scaling.launchers.protocol import Launch

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

order = json.load(sys.stdin)
if order["die"]:
    setattr(local, order["die"], die)
launcher = local.LocalLauncher(Path(order["folder"]), installation=order["launch"]["installation"],
                               command=order["command"])
print(launcher.start(Launch(**order["launch"])))
"""


def start_in_another_process(folder: Path, wanted: Launch, *, die: str = "") -> str:
    """The handle, from a process that has ended; `die`: the function of local.py at which it is killed instead."""
    fields = {name: getattr(wanted, name) for name in wanted.__dataclass_fields__}
    order = {"die": die, "folder": str(folder), "launch": fields, "command": WORKLOAD}
    done = subprocess.run(
        [sys.executable, "-c", KILLED_SCALER],
        input=json.dumps(order),
        text=True,
        cwd=ROOT,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == (-signal.SIGKILL if die else 0), done.stderr
    return done.stdout.strip()

"""Does a test fail for each guard that is taken away? `python -m tests.mutation [part of a guard's name …]`.

Works on a copy of the files as they are, one guard after the other, and prints which tests saw it. Exit status 1 when a
guard was missed, 2 when a row of the table fits the code no longer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from forge.postgres import FORGETFUL, EmbeddedPostgres, socket_folder
from tests.mutation.guard import Guard
from tests.mutation.guards import GUARDS

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600


def main(wanted: list[str]) -> int:
    chosen = [guard for guard in GUARDS if not wanted or any(part in guard.name for part in wanted)]
    unfit = [guard for guard in chosen if (ROOT / guard.path).read_text().count(guard.old) != 1]
    for guard in unfit:
        print(f"{guard.name}: {guard.path} does not have its text exactly once")
    if unfit or not chosen:
        return 2
    missed = []
    with tempfile.TemporaryDirectory(prefix="forge-mutation-") as folder, _database(Path(folder)) as url:
        copy = Path(folder) / "copy"
        _copy(copy)
        for guard in chosen:
            seen, seconds = _try(copy, guard, url)
            print(f"{'MISSED' if not seen else 'seen':<7} {guard.name} ({seconds:.0f} s)", flush=True)
            for test in seen[:3]:
                print(f"        {test}", flush=True)
            if not seen:
                missed.append(guard)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} guards are seen by a test")
    return int(bool(missed))


@contextmanager
def _database(folder: Path) -> Iterator[str]:
    """The URL of one server for all the tries: to start one, and to migrate, takes longer than most of the tests."""
    data = folder / "data"
    for each in (folder, data):
        each.mkdir(exist_ok=True)
        each.chmod(0o711)  # as root, the server's user passes through it
    with EmbeddedPostgres(data, settings=FORGETFUL):
        yield f"postgres://forge@/{quote(str(socket_folder(data / 'postgres')))}/forge"


def _copy(target: Path) -> None:
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def _try(copy: Path, guard: Guard, url: str) -> tuple[list[str], float]:
    """The tests that failed without the guard."""
    file = copy / guard.path
    whole = file.read_text()
    file.write_text(whole.replace(guard.old, guard.new))
    started = time.monotonic()
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:logging", "--reuse-db"]
    try:
        ended = subprocess.run(
            [*words, *guard.tests],
            cwd=copy,
            env={**os.environ, "DATABASE_URL": url, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    finally:
        file.write_text(whole)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run for '{guard.name}':\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    return failed, time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

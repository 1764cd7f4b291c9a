"""Does a test fail for each guard that is taken away? `python -m tests.mutation [part of a guard's name …]`.

Works on a copy of the tracked files, one guard after the other, and prints which tests saw it. Exit status 1 when a
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
from pathlib import Path

from tests.mutation.guards import GUARDS, Guard

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
    with tempfile.TemporaryDirectory(prefix="forge-mutation-") as folder:
        copy = Path(folder)
        _copy(copy)
        for guard in chosen:
            seen, seconds = _try(copy, guard)
            print(f"{'MISSED' if not seen else 'seen':<7} {guard.name} ({seconds:.0f} s)", flush=True)
            for test in seen[:3]:
                print(f"        {test}", flush=True)
            if not seen:
                missed.append(guard)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} guards are seen by a test")
    return int(bool(missed))


def _copy(target: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def _try(copy: Path, guard: Guard) -> tuple[list[str], float]:
    """The tests that failed without the guard."""
    file = copy / guard.path
    whole = file.read_text()
    file.write_text(whole.replace(guard.old, guard.new))
    started = time.monotonic()
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:logging", *guard.tests]
    try:
        ended = subprocess.run(
            words,
            cwd=copy,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
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

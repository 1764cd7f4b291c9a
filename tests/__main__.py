"""How is everything checked with one command? `python -m tests [pytest's arguments]`."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {  # name of the program: Debian's package
    "git": "git",
    "chromium": "chromium",
    "node": "nodejs",
    "npm": "npm",
}
PYTHON = [sys.executable, "-W", "ignore::RuntimeWarning"]
STRICT = ["-pci.workflow", "-pci.lifecycle", "-pci.runner"]
CHECKS = {
    "ruff check": [*PYTHON, "-m", "ruff", "check", "."],
    "ruff format": [*PYTHON, "-m", "ruff", "format", "--check", "."],
    "mypy": [*PYTHON, "-m", "mypy"],
    "mypy, strict": [*PYTHON, "-m", "mypy", "--strict", *STRICT],
    # Has no module to run; the script stands beside the interpreter of the same virtual environment.
    "imports": [str(Path(sys.executable).with_name("lint-imports"))],
    "migrations": [*PYTHON, "manage.py", "makemigrations", "--check", "--dry-run"],
}
CHECK_SECONDS, INSTALL_SECONDS, TEST_SECONDS = 600, 900, 3600


def main(arguments: list[str]) -> int:
    if not sys.flags.utf8_mode and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="replace")
    _install_programs()
    results = {} if arguments else {name: _check(name, words) for name, words in CHECKS.items()}
    status, closing_line = _pytest(arguments)
    print()
    for name, (passed, seconds) in results.items():
        print(f"{'passed' if passed else 'FAILED':<7} {name} ({seconds:.0f} s)")
    print(f"{'passed' if status == 0 else 'FAILED':<7} pytest")
    print(closing_line, flush=True)
    return int(status != 0 or not all(passed for passed, _ in results.values()))


def _install_programs() -> None:
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if not missing:
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _say(f"Installing {', '.join(missing)}")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", *words], env=environment, timeout=INSTALL_SECONDS, check=False, stdout=2)
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            print(f"missing: {program}. Tests that need it do not pass; as root: apt-get install {package}", flush=True)


def _check(name: str, words: list[str]) -> tuple[bool, float]:
    _say(name)
    started = time.monotonic()
    try:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(words, cwd=ROOT, env=environment, timeout=CHECK_SECONDS, check=False)
        passed = done.returncode == 0
    except subprocess.TimeoutExpired:
        print(f"not finished within {CHECK_SECONDS} s", flush=True)
        passed = False
    return passed, time.monotonic() - started


def _pytest(arguments: list[str]) -> tuple[int, str]:
    """pytest's exit status and closing line; its output passes through as it comes."""
    words = ["pytest", *(arguments or ["-n", str(max(2, os.cpu_count() or 1)), "--dist", "loadfile"])]
    _say("pytest")
    with subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, stdout=subprocess.PIPE) as process:
        timer = threading.Timer(TEST_SECONDS, process.terminate)
        timer.start()
        tail = b""
        while chunk := process.stdout.read1(65536):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            tail = (tail + chunk)[-8192:]
        timer.cancel()
    lines = tail.decode(errors="replace").splitlines()
    return process.returncode, next((line for line in reversed(lines) if line.strip()), "pytest said nothing")


def _say(name: str) -> None:
    print(f"\n--- {name}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

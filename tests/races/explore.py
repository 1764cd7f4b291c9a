"""Explore a larger world than every test run does: `python -m tests.races.explore [--bound 0|1|2|3]`.

Each bound is a world of test_explore.py, completely explored; they take from a minute to some hours. 0 is what the
tests explore.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.races.explore")
    parser.add_argument("--bound", type=int, default=1, choices=range(4))
    bound = parser.parse_args(arguments).bound
    words = [sys.executable, "-m", "pytest", "-q", "-s", "tests/races/test_explore.py"]
    return subprocess.run(words, cwd=ROOT, env={**os.environ, "FORGE_EXPLORE": str(bound)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

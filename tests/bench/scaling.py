"""How long does a job wait for its first step where its runner has yet to be started, and where one stands ready?

Each beside a bundled runner that has been there all along, on the same product in the same minutes.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.people import Person
from tests.e2e.product import Product, eventually
from tests.e2e.projects import Project

ROUNDS = 9
REST_SECONDS = 120.0
BUNDLED = "linux"  # a label of the bundled runner, and of neither set
# Name, and the set: the cold one has no runner while there is no job, the warm one has one ready and may have another.
SETS: Mapping[str, dict[str, Any]] = {
    "cold": {"labels": ["bench-cold"], "launcher": "local", "minimum": 0, "maximum": 1},
    "warm": {"labels": ["bench-warm"], "launcher": "local", "minimum": 1, "maximum": 2},
}
LABELS = {"bundled": BUNDLED, "warm": "bench-warm", "cold": "bench-cold"}
WHAT = {
    "bundled": "a bundled runner that waits",
    "warm": "a set of 1 idle local process",
    "cold": "a set of 0..1 local processes",
}


class Bench:
    """One product with a bundled runner and the two sets; only one job runs at a time."""

    def __init__(self, folder: Path, product: Product) -> None:
        person = Person(product, *product.first_account)
        self._call = person.call
        self._sets = {name: person.call("POST", "instance/runner-sets", {"name": name, **SETS[name]}) for name in SETS}
        self._project = Project.create(person, "bench", folder / "tree")
        job = "on: workflow_dispatch\njobs: {{job: {{runs-on: {}, steps: [{{run: echo}}]}}}}\n"
        self._project.start({f".github/workflows/{name}.yml": job.format(label) for name, label in LABELS.items()})

    def measure(self, name: str) -> float:
        """Seconds from queued to the first step of the workflow's own, with everything else at rest."""
        self._rest()
        run = self._project.dispatch(f"{name}.yml").wait(seconds=REST_SECONDS)
        job = run.job("job")
        first = next(step for step in job["steps"] if step["number"] > 1)
        return (_time(first["started_at"]) - _time(job["queued_at"])).total_seconds()

    def _rest(self) -> None:
        """Until each set has its idle runners and no others, not even ones that are just ending."""

        def at_rest() -> bool:
            for name, made in self._sets.items():
                now = self._call("GET", f"instance/runner-sets/{made['id']}")
                there = {"idle": now["idle"], "other": now["busy"] + now["starting"] + now["leaving"]}
                if there != {"idle": SETS[name]["minimum"], "other": 0} or now["assigned"]:
                    return False
            return True

        eventually(at_rest, seconds=REST_SECONDS, what="both sets are at rest")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def lines(found: Mapping[str, list[float]]) -> list[str]:
    """The medians, and each as a ratio to the bundled runner's."""
    base = statistics.median(found["bundled"])
    return [
        f"{WHAT[name]}: {statistics.median(waits) * 1000:.0f} ms (from {min(waits) * 1000:.0f} to"
        f" {max(waits) * 1000:.0f}), {statistics.median(waits) / base:.1f} times a bundled one's"
        for name, waits in found.items()
    ]


def main() -> int:
    print(f"scaling: from queued to the first step, median of {ROUNDS}", flush=True)
    with tempfile.TemporaryDirectory(prefix="forge-scaling-") as folder:
        variables = {"FORGE_ACTIONS_SOURCES": "", "FORGE_LOG_LEVEL": "WARNING", "FORGE_SCALE_CALM_SECONDS": "0"}
        product = Product(Path(folder) / "data", "--runners", "1", **variables)
        try:
            product.wait_until_printed("Ctrl-C stops it")
            bench = Bench(Path(folder), product)
            found: dict[str, list[float]] = {name: [] for name in LABELS}
            bench.measure("bundled")  # what is loaded at first use is not the set's
            for _ in range(ROUNDS):
                for name, waits in found.items():
                    waits.append(bench.measure(name))
        finally:
            product.stop()
    for line in lines(found):
        print(f"  {line}", flush=True)
    return 0

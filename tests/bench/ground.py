"""What do all benchmarks stand on? The whole product with its PostgreSQL, and what can be seen of it from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx
import psycopg

from forge.postgres import embedded_database
from tests.e2e.people import Person
from tests.e2e.product import ROOT, Product, children_of

PARTS = ("postgres", "uvicorn", "qcluster", "manage.py watch")
SETTINGS = {"FORGE_ACTIONS_SOURCES": "", "FORGE_LOG_LEVEL": "WARNING"}
_TICK = os.sysconf("SC_CLK_TCK")
_NAMES = {"NAME": "dbname", "USER": "user", "HOST": "host", "PORT": "port"}


class Ground:
    """A running product, and its database."""

    def __init__(self, folder: Path, product: Product) -> None:
        self.folder, self.product = folder, product
        given = embedded_database(product.data)
        self.database = {_NAMES[key]: str(given[key]) for key in _NAMES}  # as libpq has them
        self.person = Person(product, *product.first_account)

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(**self.database, autocommit=True)  # type: ignore[arg-type]

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows; [] for a statement that returns none."""
        with self.connect() as session:
            found = session.execute(statement, values or None)  # type: ignore[arg-type]
            return found.fetchall() if found.description else []

    def register(self, count: int, labels: Sequence[Sequence[str]], *, api: str) -> list[tuple[str, list[str]]]:
        """Tokens and labels of new runners, by the API with the owners' address `api`; the labels in turn."""
        registration = self.person.call("POST", f"{api}/registration-tokens", {})["token"]
        found = []
        with httpx.Client(base_url=self.product.url, timeout=60, trust_env=False) as client:
            client.headers["Authorization"] = f"Bearer {registration}"
            for number in range(count):
                has = list(labels[number % len(labels)])
                body = {"name": f"load-{number}", "labels": has}
                answer = client.post("/api/runner/v1/runners", json=body).raise_for_status()
                found.append((answer.json()["token"], has))
        return found

    def family(self, part: str) -> list[int]:
        """The processes of a part of the product."""
        found = [self.product.child(part)]
        for pid in found:
            found += children_of(pid)
        return found

    def work(self) -> Counter[str]:
        """Seconds of a processor that each part has used since it started."""
        used: Counter[str] = Counter()
        for part in PARTS:
            for pid in self.family(part):
                used[part] += _processor_seconds(pid)
        return used

    def memory(self, part: str) -> int:
        """Bytes of a part's processes; what they share is counted once (PSS)."""
        return sum(_proportional_bytes(pid) for pid in self.family(part))


def _processor_seconds(pid: int) -> float:
    """Its own, and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) / _TICK


def _proportional_bytes(pid: int) -> int:
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(row.split()[1]) * 1024 for row in rows if row.startswith("Pss:"))


@contextmanager
def running(*, runners: int = 0, **variables: str) -> Iterator[Ground]:
    """The product on an empty folder of its own, with so many bundled runners; `variables` go to its environment."""
    with tempfile.TemporaryDirectory(prefix="forge-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # As root the database runs as a user of its own, who must pass.
        folder.chmod(0o711)
        product = Product(folder / "data", "--runners", str(runners), **{**SETTINGS, **variables})
        try:
            product.wait_until_printed("Ctrl-C stops it")
            yield Ground(folder, product)
        finally:
            product.stop()


class Companion:
    """A process of clients beside the server, `python -m tests.bench.<module>`: a task in, and a story out, as JSON."""

    def __init__(self, module: str, task: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.bench.{module}"],
            cwd=ROOT,
            env={name: os.environ[name] for name in ("PATH",)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps(task))
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def end(self, *, patience: float = 60) -> dict[str, Any]:
        """Its story, once it was told to come to its end."""
        output, _ = self._process.communicate("end\n", timeout=patience)
        return dict(json.loads(output))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

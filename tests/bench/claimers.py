"""Claims by the product's claim statement alone: `python -m tests.bench.claimers` reads its task as a line of JSON.

On as many connections as a web process claims with, each claim a transaction of its own, until there is no job left.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import django
import psycopg


@dataclass
class Task:
    """`data`: of the product; `runners`: id, name and token hash of each; `database`: as libpq has it."""

    data: str
    runners: list[tuple[int, str, str]]
    labels: list[str]
    connections: int
    database: dict[str, str]


def parameters(task: Task, runner: tuple[int, str, str]) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "runner": runner[0],
        "name": runner[1],
        "single_use": False,
        "token_hash": runner[2],
        "poll_id": "p1",
        "now": now,
        "deadline": now + timedelta(hours=1),
        "repository": None,
        "owner": None,
        "labels": task.labels,
        "repositories": None,
        "full": [],
    }


def claim_all(task: Task, statement: Any, session: Any, number: int) -> list[float]:
    """Unix times at which each claim was committed."""
    times = []
    for runner in task.runners[number :: task.connections]:
        row = session.execute(statement, parameters(task, runner)).fetchone()
        session.commit()
        if row is None or row[0] is None:
            break
        times.append(time.time())
    return times


def main() -> None:
    task = Task(**json.loads(sys.stdin.readline()))
    os.environ["FORGE_DATA"] = task.data
    os.environ["DJANGO_SETTINGS_MODULE"] = "forge.settings"
    django.setup()
    statement = importlib.import_module("ci.lifecycle.transitions.claim").CLAIM
    options = "-c synchronous_commit=on"
    sessions = [
        # As Django does: the values are set into the text by the client.
        psycopg.connect(**task.database, options=options, cursor_factory=psycopg.ClientCursor)  # type: ignore[arg-type]
        for _ in range(task.connections)
    ]
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.time()
    with ThreadPoolExecutor(task.connections) as threads:
        found = threads.map(
            lambda number: claim_all(task, statement, sessions[number], number), range(task.connections)
        )
        times = [at for some in found for at in some]
    for session in sessions:
        session.close()
    print(json.dumps({"began": began, "claimed": times}), flush=True)


if __name__ == "__main__":
    main()

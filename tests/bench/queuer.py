"""Who queues jobs: `python -m tests.bench.queuer` reads its task as a line of JSON, and works once told to.

By the product's own transition, in a transaction of its own for each job or in one for all; and before that, where
asked to, bare notifications at the same rate.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import django
import psycopg
from django.db import transaction

_CHANNEL = "forge_bench"
_HEARD_SECONDS = 10.0


@dataclass
class Task:
    """`data`: of the product; `jobs`: blocked ones; `rate`: how many in a second, 0: all in one transaction; `bare`:
    how many notifications are sent before; `database`: as libpq has it."""

    data: str
    jobs: list[int]
    rate: float
    bare: int
    database: dict[str, str]


def paced(count: int, rate: float, act: Callable[[int], float]) -> list[float]:
    """What `act` returns, so many times a second; who is late does not wait."""
    began, found = time.monotonic(), []
    for number in range(count):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        found.append(act(number))
    return found


def bare_trips(task: Task) -> list[float]:
    """Seconds from a commit on one connection to its notification on another."""
    heard: dict[int, float] = {}
    with psycopg.connect(**task.database, autocommit=True) as listener, psycopg.connect(**task.database) as sender:
        listener.execute(f"LISTEN {_CHANNEL}")

        def listen() -> None:
            for notify in listener.notifies(timeout=task.bare / task.rate + _HEARD_SECONDS, stop_after=task.bare):
                heard[int(notify.payload)] = time.time()

        def send(number: int) -> float:
            sender.execute("SELECT pg_notify(%s, %s)", [_CHANNEL, str(number)])
            at = time.time()
            sender.commit()
            return at

        thread = threading.Thread(target=listen)
        thread.start()
        sent = paced(task.bare, task.rate, send)
        thread.join()
    return [heard[number] - at for number, at in enumerate(sent)]


def main() -> None:
    task = Task(**json.loads(sys.stdin.readline()))
    os.environ["FORGE_DATA"] = task.data
    os.environ["DJANGO_SETTINGS_MODULE"] = "forge.settings"
    django.setup()
    # Only now are there settings, and models.
    queue = importlib.import_module("ci.lifecycle.transitions.moves").queue
    job_rows = importlib.import_module("ci.models").Job.objects

    def load(ids: list[int]) -> list[Any]:
        return list(job_rows.filter(pk__in=ids).select_related("run__repository__owner").order_by("pk"))

    jobs = load(task.jobs)
    print("ready", flush=True)
    sys.stdin.readline()
    trips = bare_trips(task) if task.bare else []

    def one(number: int) -> float:
        with transaction.atomic():
            queue(jobs[number])
            return time.time()

    if task.rate:
        times = paced(len(jobs), task.rate, one)
    else:
        with transaction.atomic():
            for job in jobs:
                queue(job)
            times = [time.time()] * len(jobs)
    print(json.dumps({"bare": trips, "queued": dict(zip((job.pk for job in jobs), times, strict=True))}), flush=True)


if __name__ == "__main__":
    main()

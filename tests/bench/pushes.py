"""Do tasks wait when many push at once? Each push enqueues one as the forge does, for the product's own task processes.

`python -m tests.bench.pushes` is the process that enqueues, see `tests.bench.ground.Companion`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import Any

import django

from tests.bench.figures import Figure
from tests.bench.ground import Companion, Ground, running
from tests.e2e.product import eventually
from tests.e2e.projects import Project

PUSHES, AT_ONCE, UNPLANNED = 5000, 2000, 200
# Ten times what this server can receive by git over HTTP on two cores.
A_SECOND = 50.0
AIM_SECONDS = 5.0
WORKFLOW = "on: push\njobs: {job: {runs-on: nobody, steps: [{run: echo}]}}\n"
PLANNED, LATE, EMPTY = "planned", "late", "empty"
_LOOK_SECONDS = 0.1
_PATIENCE = 300.0


def measure(*, pushes: int = PUSHES, at_once: int = AT_ONCE, unplanned: int = UNPLANNED) -> list[Figure]:
    with running() as ground:
        project = Project.create(ground.person, "pushed", ground.folder / "tree")
        project.start({".github/workflows/small.yml": WORKFLOW})
        oldest = _feed(ground, PLANNED, pushes)
        amounts = {EMPTY: at_once, PLANNED: at_once, LATE: unplanned}
        rates = {kind: _drain(ground, kind, count) for kind, count in amounts.items()}
        [(planned,)] = ground.sql("SELECT count(*) FROM ci_run")
    assert planned == 1 + unplanned, f"{planned} runs"
    return [
        Figure(
            f"{pushes:,} pushes, {A_SECOND:g} a second, planned as they were received: the task that waited longest",
            oldest,
            "s",
            AIM_SECONDS,
            note=f"Their tasks find the push planned. {at_once:,} at once are through at {rates[PLANNED]:.0f}/s,"
            f" {rates[PLANNED] / rates[EMPTY]:.2f} of django-q2's {rates[EMPTY]:.0f}/s with empty tasks;"
            f" tasks that plan a push themselves (git, one small workflow, its run and job) at {rates[LATE]:.0f}/s",
        ),
    ]


def _feed(ground: Ground, kind: str, count: int) -> float:
    """Enqueue one after the other at the rate; the greatest age of a task that had not been done yet, in seconds."""
    seen: dict[int, float] = {}
    oldest = 0.0
    with ground.connect() as session, Companion("pushes", _task(ground, kind, count, A_SECOND)):
        until = time.monotonic() + count / A_SECOND + _PATIENCE
        enqueued = False
        while time.monotonic() < until:
            rows = session.execute(
                "SELECT id, extract(epoch FROM clock_timestamp() - least(lock, clock_timestamp()))::float8"
                " FROM django_q_ormq"
            ).fetchall()
            now = time.monotonic()
            for row, age in rows:
                # A row's lock is when it was enqueued, until a process takes it: then it lies ahead.
                seen.setdefault(row, now - age)
                oldest = max(oldest, now - seen[row])
            enqueued = enqueued or len(seen) > count * 0.5
            if enqueued and not rows and _recorded(ground) >= count + 1:
                return oldest
            time.sleep(_LOOK_SECONDS)
    raise AssertionError(f"tasks are left after {_PATIENCE} s")


def _recorded(ground: Ground) -> int:
    return int(ground.sql("SELECT count(*) FROM forge_push")[0][0])


def _drain(ground: Ground, kind: str, count: int) -> float:
    """Tasks a second that are done and gone, of so many enqueued in one transaction."""
    with Companion("pushes", _task(ground, kind, count, 0)) as enqueuing:
        enqueuing.end(patience=_PATIENCE)
    began = time.monotonic()

    def done() -> bool:
        return ground.sql("SELECT NOT EXISTS (SELECT 1 FROM django_q_ormq)")[0][0] is True

    eventually(done, seconds=_PATIENCE, what=f"{count} tasks are done", every=_LOOK_SECONDS)
    return count / (time.monotonic() - began)


def _task(ground: Ground, kind: str, count: int, rate: float) -> dict[str, Any]:
    return {"data": str(ground.product.data), "kind": kind, "count": count, "rate": rate}


def _enqueue(task: dict[str, Any]) -> None:
    models, tasks = importlib.import_module("forge.models"), importlib.import_module("django_q.tasks")
    transaction, timezone = (
        importlib.import_module("django.db.transaction"),
        importlib.import_module("django.utils.timezone"),
    )
    model = models.Push.objects.select_related("repository").order_by("pk")[0]

    def one() -> None:
        if task["kind"] == EMPTY:
            tasks.async_task("time.time")
            return
        now = timezone.now()
        model.pk, model.created_at, model.settled_at = None, now, now
        model.planned_at = now if task["kind"] == PLANNED else None
        model.save(force_insert=True)
        tasks.async_task("ci.lifecycle.tasks.plan_push", model.pk)

    if not task["rate"]:
        with transaction.atomic():
            for _ in range(task["count"]):
                one()
        return
    began = time.monotonic()
    for number in range(task["count"]):
        with transaction.atomic():
            one()
        time.sleep(max(0.0, began + (number + 1) / task["rate"] - time.monotonic()))


def main() -> None:
    task = json.loads(sys.stdin.readline())
    os.environ |= {"DJANGO_SETTINGS_MODULE": "forge.settings", "FORGE_DATA": task["data"], "FORGE_LOG_LEVEL": "WARNING"}
    django.setup()
    print("ready", flush=True)
    _enqueue(task)
    print("{}", flush=True)


if __name__ == "__main__":
    main()

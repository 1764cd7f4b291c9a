"""How does a transition leave its trace? One event row, in its own transaction."""

from __future__ import annotations

from typing import Any

from django.db import connection

from ci.models import Event, Job, Run, Runner, RunnerSet
from ci.workflow.storable import cleaned

# What listens to the database is told in the transaction that causes it, so it is never told of what did not happen.
JOB_QUEUED = "forge_jobs"
JOB_CHANGED = "forge_cancel"
DEADLINE_SET = "forge_watch"
SET_CHANGED = "forge_sets"


def record(
    kind: str,
    *,
    run: Run | None = None,
    job: Job | None = None,
    runner: Runner | None = None,
    runner_set: RunnerSet | None = None,
    from_state: str = "",
    to_state: str = "",
    actor: Any = None,
    detail: str = "",
) -> None:
    """Write that something happened. Without an actor the server itself did it."""
    Event.objects.create(
        kind=kind,
        run_id=job.run_id if job is not None else run.pk if run is not None else None,
        job=job,
        runner=runner,
        runner_set=runner_set,
        from_state=from_state,
        to_state=to_state,
        actor=actor,
        actor_name=actor.get_username() if actor is not None else "",
        detail=cleaned(detail)[:1000],
    )


def notify(channel: str, payload: object = "") -> None:
    """Wake the listeners of `channel` when the open transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [channel, str(payload)])


def wake_set(set_id: int | None) -> None:
    """Have the runner set looked at when the open transaction commits; None: there is none."""
    if set_id is not None:
        notify(SET_CHANGED, set_id)

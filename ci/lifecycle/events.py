"""How does a transition leave its trace? One event row, in its own transaction."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from ci.models import Event, Job, Run, Runner, RunnerSet
from ci.workflow.storable import cleaned

# What listens to the database is told in the transaction that causes it, so it is never told of what did not happen.
JOB_QUEUED = "forge_jobs"
JOB_CHANGED = "forge_cancel"
DEADLINE_SET = "forge_watch"
SET_CHANGED = "forge_sets"
# The watch looks at least this often, whatever it was told.
LONGEST_SLEEP = timedelta(seconds=10)
_NEAR = LONGEST_SLEEP + timedelta(seconds=5)

# With every transition: the ORM would take longer to write this text than the database to insert the row.
_COLUMNS = [str(field.attname) for field in Event._meta.concrete_fields if not field.primary_key]
_RECORD = (
    f'INSERT INTO "{Event._meta.db_table}" ({", ".join(_COLUMNS)})'  # noqa: S608 (names of columns)
    f" VALUES ({', '.join(['%s'] * len(_COLUMNS))})"
)


def event(
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
) -> Event:
    """That something happened, not yet written. Without an actor the server itself did it."""
    return Event(
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


def record(kind: str, **facts: Any) -> None:
    """Write that something happened; the facts are those of `event`."""
    found = event(kind, **facts)
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, [getattr(found, column) for column in _COLUMNS])


def record_all(found: Iterable[Event]) -> None:
    """Write that much happened."""
    Event.objects.bulk_create(found)


def notify(channel: str, payload: object = "") -> None:
    """Wake the listeners of `channel` when the open transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [channel, str(payload)])


def tell_watch(deadline: datetime) -> None:
    """Have the watch know of a new deadline when the open transaction commits, if it would not see it in time anyway.

    Most are minutes or hours away. Each word costs a lock that all who commit one share, and the watch a look at
    everything.
    """
    if deadline - timezone.now() < _NEAR:
        notify(DEADLINE_SET)


def wake_set(set_id: int | None) -> None:
    """Have the runner set looked at when the open transaction commits; None: there is none."""
    if set_id is not None:
        notify(SET_CHANGED, set_id)

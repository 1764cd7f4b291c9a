"""When is a scheduled workflow started? At its due time, once; after an outage once for all the times missed."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from ci.lifecycle import webhook_payloads, workflow_files
from ci.lifecycle.transitions import Cause, create_run
from ci.lifecycle.transitions.guard import guarded
from ci.models import Schedule
from ci.workflow import ScheduleError
from ci.workflow import Workflow as Document
from ci.workflow import schedule as cron
from forge.git import bare


@guarded
def fire(schedule_id: int) -> bool:
    """Start the workflow if its time has come, and set the next time in the same transaction."""
    row = (
        Schedule.objects.select_for_update(no_key=True, of=("self",))
        .select_related("workflow__repository__owner")
        .filter(pk=schedule_id)
        .first()
    )
    now = timezone.now()
    if row is None or row.next_at > now:
        return False
    due = row.next_at
    try:
        row.next_at = cron.next_time(row.cron, row.timezone, now)
    except ScheduleError:
        row.delete()
        return False
    row.last_at = now
    row.save(update_fields=["next_at", "last_at"])
    if row.workflow.enabled:
        _start(row, due)
    return True


def _start(row: Schedule, due: datetime) -> None:
    repository, path = row.workflow.repository, row.workflow.path
    ref = f"refs/heads/{repository.default_branch}"
    sha = bare.resolve(repository, ref)
    if sha is None:
        return
    document = workflow_files.load_all(repository, sha).get(path)
    if not isinstance(document, Document):
        return
    if (row.cron, row.timezone) not in {(entry, zone or "UTC") for entry, zone in document.schedules}:
        return  # it was taken out of the file, which is not noted yet
    cause = Cause(
        repository=repository,
        path=path,
        event="schedule",
        payload=webhook_payloads.schedule(repository, cron=row.cron, path=path),
        ref=ref,
        sha=sha,
        title=document.name,
        actor=None,
        trusted=True,
        schedule=row,
        scheduled_for=due,
    )
    create_run(cause, document)

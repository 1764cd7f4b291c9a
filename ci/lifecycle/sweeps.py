"""Which deadlines have passed, and when does the next one?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Min, QuerySet
from django.utils import timezone
from django_q.tasks import async_task

from ci.lifecycle import schedules
from ci.lifecycle.errors import LifecycleError
from ci.lifecycle.transitions import act_on_deadline, act_on_run_deadline, lose_job, settle
from ci.models import ConcurrencyGroup, Heartbeat, Hold, Job, JobState, Log, Run, RunState, Schedule
from ci.storage import logs

logger = logging.getLogger(__name__)

BATCH = 500


def sweep(*, losing_from: datetime | None = None) -> int:
    """Act on everything that is due now; returns how much there was. Safe to run twice at once.

    Before `losing_from` no job is lost for its runner's silence: the server may have been what was silent.
    """
    now = timezone.now()
    return (
        _each(_ids(Job.objects.filter(deadline_at__lte=now).exclude(state=JobState.ENDED)), _deadline)
        + _each(_ids(Run.objects.filter(deadline_at__lte=now).exclude(state=RunState.ENDED)), _run_deadline)
        + _each(_silent(now) if losing_from is None or losing_from <= now else [], _lost)
        + _each(_ids(Schedule.objects.filter(next_at__lte=now)), schedules.fire)
        + _each(_late_logs(now), seal_log)
    )


def next_deadline(*, losing_from: datetime | None = None) -> datetime | None:
    """When `sweep` will find something next, as far as the rows say; None when nothing waits."""
    moving = Job.objects.exclude(state=JobState.ENDED)
    beats = Heartbeat.objects.filter(job__state=JobState.RUNNING).aggregate(at=Min("at"))["at"]
    ended = Log.objects.filter(sealed_at=None, job__state=JobState.ENDED).aggregate(at=Min("job__ended_at"))["at"]
    silent = beats and beats + timedelta(seconds=settings.HEARTBEAT_SECONDS)
    times = [
        moving.aggregate(at=Min("deadline_at"))["at"],
        Run.objects.exclude(state=RunState.ENDED).aggregate(at=Min("deadline_at"))["at"],
        max(silent, losing_from) if silent and losing_from else silent,
        Schedule.objects.aggregate(at=Min("next_at"))["at"],
        ended and ended + timedelta(seconds=settings.LOG_SEAL_SECONDS),
    ]
    return min((at for at in times if at), default=None)


def settle_groups() -> int:
    """A backstop for concurrency groups: settle each in which somebody waits. Here and now: tasks may be what fails."""
    waiting = ConcurrencyGroup.objects.filter(runs__state=RunState.WAITING).values_list("id", flat=True)
    # That it is of a group at all is what their indexes begin with.
    blocked = Job.objects.filter(state=JobState.BLOCKED).order_by()
    held = blocked.filter(hold=Hold.CONCURRENCY, concurrency_group__isnull=False)
    calls = blocked.filter(hold=Hold.CALLED_GROUP, called_group__isnull=False)
    groups = {
        *waiting,
        *held.values_list("concurrency_group", flat=True),
        *calls.values_list("called_group", flat=True),
    }
    return _each(sorted(groups), settle)


def seal_log(job_id: int) -> None:
    """Close a log against late lines, and have its chunks merged."""
    logs.seal(job_id)
    async_task("ci.lifecycle.tasks.merge_log", job_id)


def _deadline(job_id: int) -> None:
    done = act_on_deadline(job_id=job_id)
    if done:
        logger.info("job %s: %s", job_id, done)


def _run_deadline(run_id: int) -> None:
    if act_on_run_deadline(run_id=run_id):
        logger.info("run %s: over its time", run_id)


def _lost(job_id: int) -> None:
    if lose_job(job_id=job_id):
        logger.info("job %s: lost", job_id)


def _silent(now: datetime) -> list[int]:
    limit = now - timedelta(seconds=settings.HEARTBEAT_SECONDS)
    beats = Heartbeat.objects.filter(at__lte=limit, job__state=JobState.RUNNING)
    return list(beats.values_list("job_id", flat=True)[:BATCH])


def _late_logs(now: datetime) -> list[int]:
    limit = now - timedelta(seconds=settings.LOG_SEAL_SECONDS)
    late = Log.objects.filter(sealed_at=None, job__state=JobState.ENDED, job__ended_at__lte=limit)
    return list(late.values_list("job_id", flat=True)[:BATCH])


def _ids(rows: QuerySet[Any]) -> list[int]:
    return list(rows.values_list("id", flat=True)[:BATCH])


def _each(ids: Iterable[int], act: Callable[[int], object]) -> int:
    """One that fails must not keep the others waiting."""
    count = 0
    for row_id in ids:
        count += 1
        try:
            act(row_id)
        except LifecycleError as error:
            logger.info("%s: %s", row_id, error)
        except Exception:
            logger.exception("sweep of %s failed", row_id)
    return count

"""How are waiting and running times of the jobs of runner sets counted, so that no count ever goes down?

A job writes a row of its own and waits for nobody; the scaler adds the rows up under its set's lock. Jobs, runners and
repositories may be deleted: what they have added stays.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection

from ci.models import Job, JobMeasure, Measured, MeasureSum

# Seconds: from what a warm runner takes to what a job may take that runs for hours.
BOUNDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, math.inf)
OTHER_REPOSITORIES = "(others)"

ADD_UP = """
WITH taken AS (DELETE FROM ci_jobmeasure WHERE runner_set_id = %(set)s RETURNING *)
INSERT INTO ci_measuresum AS known (runner_set_id, kind, repository, result, bound, count, milliseconds)
SELECT runner_set_id, kind, repository, result, bound, count(*), sum(milliseconds) FROM taken GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (runner_set_id, kind, repository, result, bound) DO UPDATE
SET count = known.count + excluded.count, milliseconds = known.milliseconds + excluded.milliseconds
"""

# One statement, so one snapshot: a row that is being added up is counted once, before or after.
SUMS = """
SELECT runner_set_id, kind, repository, result, bound, sum(count)::bigint, sum(milliseconds)::bigint FROM (
    SELECT runner_set_id, kind, repository, result, bound, count, milliseconds FROM ci_measuresum
    WHERE runner_set_id = ANY(%(sets)s)
    UNION ALL
    SELECT runner_set_id, kind, repository, result, bound, 1, milliseconds FROM ci_jobmeasure
    WHERE runner_set_id = ANY(%(sets)s)
) measures GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""


@dataclass(frozen=True)
class Sum:
    """So many measures of a set fell into the bucket that ends at `bound` seconds."""

    set_id: int
    kind: str
    repository: str
    result: str
    bound: float
    count: int
    milliseconds: int


def note_start(job: Job, now: datetime) -> None:
    """A runner of a set has begun the job: in the transaction in which it did."""
    if job.runner is None or job.runner.runner_set_id is None:
        return
    _note(job, Measured.Kind.QUEUE, job.queued_at, job.assigned_at)
    _note(job, Measured.Kind.STARTUP, job.queued_at, now)


def note_end(job: Job, now: datetime) -> None:
    """The job that a runner of a set has ends, in this transaction, with the conclusion that it has by now."""
    if job.runner is None or job.runner.runner_set_id is None:
        return
    _note(job, Measured.Kind.EXECUTION, job.assigned_at, now, result=str(job.conclusion))


def add_up(set_id: int) -> None:
    """Add up what has been written since the last time. The caller holds the set's lock."""
    with connection.cursor() as cursor:
        cursor.execute(ADD_UP, {"set": set_id})


def sums(set_ids: Sequence[int]) -> list[Sum]:
    """All that was ever counted for these sets: a row a bucket."""
    with connection.cursor() as cursor:
        cursor.execute(SUMS, {"sets": list(set_ids)})
        return [Sum(*row) for row in cursor.fetchall()]


def _note(job: Job, kind: str, since: datetime | None, until: datetime | None, *, result: str = "") -> None:
    assert job.runner is not None and job.runner.runner_set_id is not None
    # The clocks of two servers may differ: no time is negative.
    seconds = max(0.0, (until - since).total_seconds()) if since and until else 0.0
    JobMeasure.objects.create(
        runner_set_id=job.runner.runner_set_id,
        kind=kind,
        repository=_repository(job, job.runner.runner_set_id),
        result=result,
        bound=BOUNDS[bisect.bisect_left(BOUNDS, seconds)],
        milliseconds=round(seconds * 1000),
    )


def _repository(job: Job, set_id: int) -> str:
    """ "" unless repositories are told apart; then of a set the first ones have their names, and the others one."""
    most = settings.METRICS_REPOSITORIES
    if most <= 0:
        return ""
    name = str(job.run.repository)
    known: set[str] = set()
    for model in (MeasureSum, JobMeasure):
        rows = model.objects.filter(runner_set=set_id).exclude(repository__in=["", OTHER_REPOSITORIES])
        known.update(rows.order_by("repository").values_list("repository", flat=True).distinct()[: most + 1])
    return name if name in known or len(known) < most else OTHER_REPOSITORIES

"""What does a runner set have to do, and what has it? Seen in one moment, or a job that ends between two looks would
look like one that waits for another runner."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db import connection

from ci.lifecycle.matching import normalised
from ci.models import TERMINAL_PHASES, RunnerSet

# A queue is not counted further: no set may have as many runners.
MOST_COUNTED = 10_000

# One statement, so one snapshot (PostgreSQL docs, "Read Committed Isolation Level").
SIGHT = """
WITH active AS (
    SELECT job.runner_id AS runner, run.repository_id AS repository FROM ci_runner runner
    JOIN ci_job job ON job.runner_id = runner.id AND job.state IN ('assigned', 'running')
    JOIN ci_run run ON run.id = job.run_id
    WHERE runner.runner_set_id = %(set)s
), waiting AS (
    SELECT run.repository_id AS repository FROM ci_labelset
    JOIN ci_job job ON job.label_set_id = ci_labelset.id AND job.state = 'queued'
    JOIN ci_run run ON run.id = job.run_id
    JOIN forge_repository repository ON repository.id = run.repository_id
    WHERE ci_labelset.labels <@ %(labels)s::varchar[]
        AND (%(repository)s::bigint IS NULL OR repository.id = %(repository)s)
        AND (%(owner)s::bigint IS NULL OR repository.owner_id = %(owner)s)
        AND (%(repositories)s::bigint[] IS NULL OR repository.id = ANY(%(repositories)s))
        AND (%(limit)s::int IS NULL OR repository.id NOT IN (
            SELECT repository FROM active GROUP BY repository HAVING count(*) >= %(limit)s
        ))
    LIMIT %(most)s
)
SELECT
    (SELECT json_agg(json_build_array(repository, count)) FROM
        (SELECT repository, count(*) AS count FROM waiting GROUP BY repository) counted),
    (SELECT json_agg(json_build_array(repository, count)) FROM
        (SELECT repository, count(*) AS count FROM active GROUP BY repository) counted),
    (SELECT json_agg(json_build_array(
        runner.id, runner.phase, runner.registered_at IS NOT NULL, runner.deleting_at IS NOT NULL, runner.paused,
        EXISTS (SELECT 1 FROM active WHERE active.runner = runner.id)
    ) ORDER BY runner.id) FROM ci_runner runner WHERE runner.runner_set_id = %(set)s AND runner.stopped_at IS NULL)
"""


@dataclass(frozen=True)
class Seen:
    """One runner whose process may exist. `up`: it has asked for a job. `going`: its process was told to go."""

    id: int
    phase: str
    up: bool
    going: bool
    paused: bool
    busy: bool

    @property
    def is_done(self) -> bool:
        return self.phase in TERMINAL_PHASES

    @property
    def is_useful(self) -> bool:
        """Whether it has a job or may get one: none that is told to go does, nor does one that is paused."""
        return not self.is_done and not self.going and (self.busy or not self.paused)

    @property
    def is_spared(self) -> bool:
        """Whether it is kept from jobs by a person, and by nothing else."""
        return not self.is_done and not self.going and not self.is_useful


@dataclass(frozen=True)
class Sight:
    """`queued`: jobs that wait and may run here; `active`: jobs that its runners have."""

    queued: int
    active: int
    runners: tuple[Seen, ...]

    @property
    def assigned(self) -> int:
        """Waiting and running jobs: the totalAssignedJobs of actions-runner-controller."""
        return self.queued + self.active

    @property
    def useful(self) -> list[Seen]:
        """Those that have a job or may get one; the others only take up room until their processes are gone."""
        return [runner for runner in self.runners if runner.is_useful]


def look(runner_set: RunnerSet) -> Sight:
    """Jobs and runners of a set at one moment."""
    limit = runner_set.maximum_per_repository
    with connection.cursor() as cursor:
        cursor.execute(
            SIGHT,
            {
                **limits(runner_set),
                "set": runner_set.pk,
                "labels": normalised(runner_set.labels),
                # A repository that may run no more here is left out, or it could fill the first ones counted.
                "limit": limit,
                "most": MOST_COUNTED,
            },
        )
        waiting, active, runners = cursor.fetchone()
    running = Counter(dict(active or []))
    queued = sum(
        count if limit is None else min(count, max(0, limit - running[repository]))
        for repository, count in waiting or []
    )
    return Sight(queued, running.total(), tuple(Seen(*row) for row in runners or []))


def limits(runner_set: RunnerSet) -> dict[str, Any]:
    """Whose jobs may run here, for a query: `repository` and `owner` by scope, `repositories` that it is limited to."""
    only = list(runner_set.repositories.order_by("pk").values_list("pk", flat=True))
    return {
        "repository": runner_set.repository_id,
        "owner": runner_set.owner_id if runner_set.repository_id is None else None,
        "repositories": only or None,
    }


def full_repositories(runner_set: RunnerSet) -> list[int]:
    """The repositories that have as many jobs here as each may have at once."""
    if runner_set.maximum_per_repository is None:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT run.repository_id FROM ci_runner runner"
            " JOIN ci_job job ON job.runner_id = runner.id AND job.state IN ('assigned', 'running')"
            " JOIN ci_run run ON run.id = job.run_id WHERE runner.runner_set_id = %s"
            " GROUP BY run.repository_id HAVING count(*) >= %s",
            [runner_set.pk, runner_set.maximum_per_repository],
        )
        return [row[0] for row in cursor.fetchall()]


def desired_count(*, minimum: int, maximum: int, assigned: int) -> int:
    """How many runners a set shall have: `minimum` idle ones beside those with work, `maximum` at most.

    Source of the rule: the scaler of actions-runner-controller.
    """
    return min(minimum + assigned, maximum)

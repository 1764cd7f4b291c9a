"""Which statement finds the first queued job that a runner may take, and takes it?

However long the queue is, and whosever jobs fill it, only its heads are read: the first few jobs of each label set that
fits (or of each repository in it), in the order of an index that begins with the runner's scope. That the scope is one
of the index' columns and no join is what keeps a runner of one owner from reading a million jobs of another.

The answer is one row: the id of the job that was taken, or NULL, and whether there were heads. Where there were and
none was taken others have taken them all since the statement began, and it is worth another look.

The parameters are set into the text by the client, as Django does: a scope that is NULL is then no condition at all,
and one that is given is a condition of an index.
"""

from __future__ import annotations

# More than claims can be going on at once: with all heads locked by others an empty answer would come while jobs wait.
HEADS = 64

_ORDER = "priority DESC, queued_at, id"

# The first of each label set that fits.
_OF_LABEL_SETS = f"""
        SELECT head.* FROM ci_labelset
        CROSS JOIN LATERAL (
            SELECT queued.id, queued.priority, queued.queued_at FROM ci_job queued
            WHERE queued.label_set_id = ci_labelset.id AND queued.state = 'queued'
                AND (%(repository)s::bigint IS NULL OR queued.queue_repository = %(repository)s)
                AND (%(owner)s::bigint IS NULL OR queued.queue_owner = %(owner)s)
            ORDER BY {_ORDER} LIMIT {HEADS}
        ) head
        WHERE ci_labelset.labels <@ %(labels)s::varchar[]
        ORDER BY {_ORDER} LIMIT {HEADS}
"""  # noqa: S608 (the only values set in are constants)

# The first of each repository in each label set that fits. Repositories that are not given are found by going through
# the index from one to the next; of more than HEADS of these lanes, the ones that do not have one of the first HEADS
# jobs at their head have none of them at all. BETWEEN, and an order that begins with the repository, so that no other
# index will do: where most jobs are of one repository the planner might take the whole queue for one it can filter.
_OF_REPOSITORIES = f"""
        WITH RECURSIVE found (label_set, repository) AS (
            SELECT id, 0::bigint FROM ci_labelset
            WHERE labels <@ %(labels)s::varchar[] AND %(repositories)s::bigint[] IS NULL
            UNION ALL
            SELECT found.label_set, next.repository FROM found
            CROSS JOIN LATERAL (
                SELECT queued.queue_repository AS repository FROM ci_job queued
                WHERE queued.label_set_id = found.label_set AND queued.state = 'queued'
                    AND queued.queue_repository > found.repository
                ORDER BY queued.queue_repository LIMIT 1
            ) next
        ), lane AS (
            SELECT label_set, repository FROM found
            UNION ALL
            SELECT ci_labelset.id, given FROM ci_labelset, unnest(%(repositories)s::bigint[]) given
            WHERE labels <@ %(labels)s::varchar[]
        ), best AS (
            SELECT lane.* FROM lane
            JOIN forge_repository repository ON repository.id = lane.repository
            CROSS JOIN LATERAL (
                SELECT queued.id, queued.priority, queued.queued_at FROM ci_job queued
                WHERE queued.label_set_id = lane.label_set AND queued.state = 'queued'
                    AND queued.queue_repository BETWEEN lane.repository AND lane.repository
                ORDER BY queued.queue_repository, {_ORDER} LIMIT 1
            ) head
            WHERE repository.id <> ALL(%(full)s::bigint[])
                AND (%(repository)s::bigint IS NULL OR repository.id = %(repository)s)
                AND (%(owner)s::bigint IS NULL OR repository.owner_id = %(owner)s)
            ORDER BY head.priority DESC, head.queued_at, head.id LIMIT {HEADS}
        )
        SELECT head.* FROM best
        CROSS JOIN LATERAL (
            SELECT queued.id, queued.priority, queued.queued_at FROM ci_job queued
            WHERE queued.label_set_id = best.label_set AND queued.state = 'queued'
                AND queued.queue_repository BETWEEN best.repository AND best.repository
            ORDER BY queued.queue_repository, {_ORDER} LIMIT {HEADS}
        ) head
        ORDER BY {_ORDER} LIMIT {HEADS}
"""  # noqa: S608


def _taking_one_of(heads: str) -> str:
    return f"""
WITH heads AS MATERIALIZED ({heads}), taken AS (
    UPDATE ci_job SET state = 'assigned', runner_id = %(runner)s, runner_name = %(name)s, single_use = %(single_use)s,
        token_hash = %(token_hash)s, poll_id = %(poll_id)s, assignment = assignment + 1, assigned_at = %(now)s,
        deadline_at = %(deadline)s, version = version + 1
    WHERE id = (
        SELECT job.id FROM heads
        JOIN ci_job job ON job.id = heads.id
        WHERE job.state = 'queued'
        ORDER BY job.priority DESC, job.queued_at, job.id
        FOR NO KEY UPDATE OF job SKIP LOCKED LIMIT 1
    )
    RETURNING id
)
SELECT (SELECT id FROM taken), EXISTS (SELECT 1 FROM heads)
"""  # noqa: S608


CLAIM = _taking_one_of(_OF_LABEL_SETS)
# For a runner of a set that leaves some repositories out.
CLAIM_BY_REPOSITORY = _taking_one_of(_OF_REPOSITORIES)

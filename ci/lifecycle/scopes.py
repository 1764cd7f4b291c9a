"""Which jobs of a run see each other through `needs`? Those of its workflow, and those of each call of another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ci.models import Job
from ci.workflow import needs

Legs = dict[str, list[Job]]


def by_scope(jobs: Sequence[Job]) -> dict[int | None, list[Job]]:
    """The jobs of each scope by the id of the call that they belong to; None for the run's own workflow."""
    scopes: dict[int | None, list[Job]] = {}
    for job in jobs:
        scopes.setdefault(job.parent_id, []).append(job)
    return scopes


def by_key(jobs: Sequence[Job]) -> Legs:
    """Of one scope: a job's legs by its key, in matrix order."""
    groups: Legs = {}
    for job in jobs:
        groups.setdefault(job.key, []).append(job)
    return groups


def results(groups: Mapping[str, Sequence[Job]]) -> dict[str, str | None]:
    """A job's result over its legs; None until all have ended."""
    return {
        key: needs.result([(str(leg.conclusion), leg.continue_on_error) for leg in group])
        if all(leg.is_ended for leg in group)
        else None
        for key, group in groups.items()
    }


def ancestors(key: str, groups: Legs, known: Mapping[str, str | None]) -> dict[str, str]:
    """The results of all jobs that the job `key` waits for, directly or through others; they have ended."""
    wanted: dict[str, Sequence[str]] = {job: group[0].needs for job, group in groups.items()}
    return {job: str(known[job]) for job in needs.ancestors(wanted)[key]}

"""Which runner sets may want a job that has just been queued?"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from ci.lifecycle.matching import normalised
from ci.models import Job, LabelSet, RunnerSet


def sets_for(payload: str) -> set[int]:
    """Ids of the sets that the words of a queued job (label set, repository, owner) concern; of all if it has none."""
    parts = payload.split(":")
    sets = RunnerSet.objects.exclude(phase=RunnerSet.Phase.DELETING)
    if len(parts) == 3 and all(part.isdecimal() for part in parts):
        label_set, repository, owner = (int(part) for part in parts)
        wanted = LabelSet.objects.filter(pk=label_set).values_list("labels", flat=True).first()
        if wanted is None:
            return set()
        return {found.pk for found in _fitting(wanted, repository, owner)}
    return set(sets.values_list("pk", flat=True))


def sets_of(job: Job) -> list[RunnerSet]:
    """The sets that may run this job, those that can before the others."""
    repository = job.run.repository
    found = _fitting(normalised(job.runs_on), repository.pk, repository.owner_id)
    serving = [one for one in found if _serves(one, repository.pk)]
    return sorted(serving, key=lambda one: (one.phase != RunnerSet.Phase.RUNNING, bool(one.trouble), one.pk))


def _fitting(wanted: Sequence[str], repository: int, owner: int) -> list[RunnerSet]:
    in_scope = Q(repository=repository) | Q(repository=None, owner=owner) | Q(repository=None, owner=None)
    sets = RunnerSet.objects.exclude(phase=RunnerSet.Phase.DELETING).filter(in_scope).order_by("pk")
    # Labels compare without case, and few sets are in one scope: what the database has is compared here.
    return [one for one in sets if set(wanted) <= set(normalised(one.labels))]


def _serves(runner_set: RunnerSet, repository: int) -> bool:
    only = set(runner_set.repositories.values_list("pk", flat=True))
    return not only or repository in only

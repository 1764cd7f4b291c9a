"""Which runner sets may want a job that has just been queued?"""

from __future__ import annotations

from django.db.models import Q

from ci.models import LabelSet, RunnerSet


def sets_for(payload: str) -> set[int]:
    """Ids of the sets that the words of a queued job (label set, repository, owner) concern; of all if it has none."""
    parts = payload.split(":")
    sets = RunnerSet.objects.exclude(phase=RunnerSet.Phase.DELETING)
    if len(parts) == 3 and all(part.isdecimal() for part in parts):
        label_set, repository, owner = (int(part) for part in parts)
        wanted = LabelSet.objects.filter(pk=label_set).values_list("labels", flat=True).first()
        if wanted is None:
            return set()
        in_scope = Q(repository=repository) | Q(repository=None, owner=owner) | Q(repository=None, owner=None)
        # Labels compare without case, and few sets are in one scope: what the database has is compared here.
        found = sets.filter(in_scope).values_list("pk", "labels")
        return {pk for pk, labels in found if set(wanted) <= {label.strip().lower() for label in labels}}
    return set(sets.values_list("pk", flat=True))

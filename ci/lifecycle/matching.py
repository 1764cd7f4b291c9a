"""Which jobs may a runner take? Those whose labels it has all of, within its scope."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q, QuerySet

from ci.models import LabelSet, Run, Runner


def normalised(labels: Sequence[str]) -> list[str]:
    """Labels compare case-insensitively, and their order says nothing."""
    return sorted({label.strip().lower() for label in labels if label.strip()})


def label_set_of(labels: Sequence[str]) -> LabelSet:
    """The row of this set of labels, made at first use; whoever else makes it at that moment is waited for."""
    wanted = normalised(labels)
    found = LabelSet.objects.filter(labels=wanted).first()
    if found is None:
        # ON CONFLICT DO NOTHING: get_or_create would try, and leave an error in the database's log.
        LabelSet.objects.bulk_create([LabelSet(labels=wanted)], ignore_conflicts=True)
        found = LabelSet.objects.get(labels=wanted)
    return found


def fitting_label_sets(labels: Sequence[str]) -> list[int]:
    """Ids of the label sets that a runner with these labels has all of."""
    fitting = LabelSet.objects.filter(labels__contained_by=normalised(labels))
    return list(fitting.values_list("id", flat=True))


def runners_in_scope(run: Run) -> QuerySet[Runner]:
    """The runners that serve this run's repository: its own, its owner's, and the instance's."""
    return Runner.objects.filter(
        Q(repository=run.repository_id)
        | Q(repository=None, owner=run.repository.owner_id)
        | Q(repository=None, owner=None)
    )

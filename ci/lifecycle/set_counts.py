"""How many runners has each set, and what do they do? For lists: as columns of the query."""

from __future__ import annotations

from django.db.models import Count, Exists, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from ci.models import ACTIVE_STATES, TERMINAL_PHASES, Job, Runner, RunnerSet


def counted(sets: QuerySet[RunnerSet]) -> QuerySet[RunnerSet]:
    """
    The sets with how many of their runners are `busy` (have a job), `idle` (wait for one), `starting`, `leaving` (ended
    or told to go, while their processes may still be there), and of all but the last ones, how many are `current`: of
    the newest revision. Paused ones without a job are neither idle nor starting.
    """
    has_job = Exists(Job.objects.filter(runner=OuterRef("pk"), state__in=ACTIVE_STATES).order_by())
    live = Runner.objects.filter(runner_set=OuterRef("pk"), stopped_at=None).order_by()
    useful = ~Q(phase__in=TERMINAL_PHASES) & Q(deleting_at=None)
    up = Q(registered_at__isnull=False)
    free = live.filter(useful, paused=False).exclude(has_job)
    return sets.annotate(
        busy=_count(live.filter(useful).filter(has_job)),
        idle=_count(free.filter(up)),
        starting=_count(free.exclude(up)),
        leaving=_count(live.exclude(useful)),
        current=_count(live.filter(useful, spec_revision=OuterRef("spec_revision"))),
    )


def _count(rows: QuerySet[Runner]) -> Coalesce:
    """A query of its own, which the index of live runners answers: those that are gone are kept for a day."""
    number = rows.values("runner_set").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(number, output_field=IntegerField()), 0)

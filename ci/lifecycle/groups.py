"""Which concurrency group is meant, who holds it or waits for it, and how is it told that somebody left or came?"""

from __future__ import annotations

from django.db.models import Q
from django_q.tasks import async_task

from ci.models import ACTIVE_STATES, ConcurrencyGroup, Hold, JobState, RunState


def group_of(repository_id: int, name: str) -> ConcurrencyGroup:
    """The group's row, made at first use. GitHub compares names case-insensitively."""
    group, _ = ConcurrencyGroup.objects.get_or_create(repository_id=repository_id, name=name.lower()[:400])
    return group


def waits_for(group_id: int) -> Q:
    """Of jobs: those that wait for the group."""
    own = Q(hold=Hold.CONCURRENCY, concurrency_group=group_id)
    return Q(own | Q(hold=Hold.CALLED_GROUP, called_group=group_id), state=JobState.BLOCKED)


def holding_jobs(group_id: int) -> Q:
    """Of jobs: those that have been let in and have not ended. A call keeps its own group while it waits for the
    group of what it calls."""
    going = Q(state__in=[JobState.QUEUED, *ACTIVE_STATES]) | Q(hold__in=[Hold.CALLED, Hold.CALLED_GROUP])
    return Q(going, concurrency_group=group_id) | Q(hold=Hold.CALLED, called_group=group_id)


def holding_runs(group_id: int) -> Q:
    """Of runs: those that have been let in and have not ended."""
    return Q(concurrency_group=group_id, state__in=[RunState.QUEUED, RunState.RUNNING])


def settle_later(group_id: int) -> None:
    """Have the group settled once the open transaction has committed.

    A holder's end must not lock the group: the order is group, then run, and the end holds its run already. The task
    is a row of the same transaction, so whoever dies next, the group is settled.
    """
    async_task("ci.lifecycle.tasks.settle_group", group_id)


def break_later(group_id: int) -> None:
    """Have the circle that goes through this group broken, once the open transaction has committed."""
    async_task("ci.lifecycle.tasks.break_circle", group_id)

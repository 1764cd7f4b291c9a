"""Which concurrency group is meant, and how is it told that somebody left or came?"""

from __future__ import annotations

from django_q.tasks import async_task

from ci.models import ConcurrencyGroup


def group_of(repository_id: int, name: str) -> ConcurrencyGroup:
    """The group's row, made at first use. GitHub compares names case-insensitively."""
    group, _ = ConcurrencyGroup.objects.get_or_create(repository_id=repository_id, name=name.lower()[:400])
    return group


def settle_later(group_id: int) -> None:
    """Have the group settled once the open transaction has committed.

    A holder's end must not lock the group: the order is group, then run, and the end holds its run already. The task
    is a row of the same transaction, so whoever dies next, the group is settled.
    """
    async_task("ci.lifecycle.tasks.settle_group", group_id)

"""Which caches go, and when? Over the quota those used longest ago, and what nobody has used or finished for long."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.db.models import Case, F, Q, QuerySet, Sum, Value, When, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from ci.lifecycle.caches.locking import lock_caches, remove
from ci.lifecycle.caches.quota import quota, usage
from ci.lifecycle.errors import LifecycleError
from ci.lifecycle.transitions.guard import guarded
from ci.models import ACTIVE_STATES, CacheEntry
from forge.models import Repository

logger = logging.getLogger(__name__)

# Of a repository, whatever their size: what finds, sums up and evicts looks at all of them.
MAX_ENTRIES = 10_000
BATCH = 500


def evict(repository_id: int) -> int:
    """Remove what is over the quota, was not used for FORGE_CACHE_DAYS, or was reserved by a job that has ended.

    How many entries went. Raises NotFound.
    """
    count = 0
    while True:
        removed = _evict_some(repository_id)
        count += removed
        if removed < BATCH:
            return count


def evict_stale() -> int:
    """In every repository that has something old; how many entries went. Safe to repeat and to kill."""
    count = 0
    for repository_id in CacheEntry.objects.filter(_stale()).order_by().values_list("repository", flat=True).distinct():
        try:
            count += evict(repository_id)
        except LifecycleError as error:
            logger.info("caches of repository %s: %s", repository_id, error)
        except Exception:  # one that fails must not keep the others waiting
            logger.exception("evicting caches of repository %s failed", repository_id)
    return count


def make_room(repository: Repository, *, keep: CacheEntry) -> int:
    """Under the lock: remove what is over the quota, but not `keep`, which fits alone; how many went."""
    return _remove(_over_quota(repository, keep=keep))


@guarded
def _evict_some(repository_id: int) -> int:
    repository = lock_caches(repository_id)
    stale = CacheEntry.objects.select_related("blob").filter(_stale(), repository=repository).order_by("pk")
    removed = _remove(stale[:BATCH])
    return removed + _remove(_over_quota(repository)[: BATCH - removed])


def _remove(rows: Iterable[CacheEntry]) -> int:
    found = list(rows)
    if found:
        remove(found)
    return len(found)


def _over_quota(repository: Repository, *, keep: CacheEntry | None = None) -> QuerySet[CacheEntry]:
    """From the last used one on entries are kept as long as they fit together; all others, the longest unused first."""
    limit, taken = quota(repository), usage(repository)
    if taken.size <= limit and taken.entries <= MAX_ENTRIES:
        return CacheEntry.objects.none()
    kept = Case(When(pk=keep.pk if keep else None, then=Value(0)), default=Value(1))
    order = [kept, F("last_used_at").desc(), F("pk").desc()]
    rows = CacheEntry.objects.filter(repository=repository, finalized_at__isnull=False).select_related("blob")
    counted = rows.annotate(with_newer=Window(Sum("size"), order_by=order), number=Window(RowNumber(), order_by=order))
    over = counted.filter(Q(with_newer__gt=limit) | Q(number__gt=MAX_ENTRIES))
    return over.order_by("last_used_at", "pk")


def _stale() -> Q:
    limit = timezone.now() - timedelta(days=settings.CACHE_DAYS)
    unfinished = Q(finalized_at=None) & (Q(job=None) | ~Q(job__state__in=ACTIVE_STATES))
    return unfinished | Q(finalized_at__isnull=False, last_used_at__lt=limit)

"""Which cache does a job get? The nearest scope's; there the key itself, else the newest that begins with one of them.

Source of the order: GitHub docs, "Dependency caching reference", cache key matching."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Case, Q, QuerySet, Value, When
from django.utils import timezone

from ci.lifecycle.caches.keys import check_key, check_keys, check_version
from ci.lifecycle.caches.scopes import readable_scopes
from ci.models import CacheEntry, Job, Run

USED_EVERY = timedelta(minutes=1)
_LOOKS = 5


def find_cache(*, job: Job, keys: Sequence[str], version: str) -> CacheEntry | None:
    """`keys`: the key itself, then those that its begin may be instead. What is found has been used now.

    Raises InvalidInput.
    """
    check_keys(keys)
    check_version(version)
    candidates = matches(job.run, keys, version)
    for _ in range(_LOOKS):
        found = candidates.all().first()
        if found is None or _use(found):
            return found
    return None  # each that was found was evicted at once: there is little room, and much is kept


def visible_caches(*, job: Job, key: str, version: str) -> QuerySet[CacheEntry]:
    """What the job could find that begins with `key`, whatever the version: for clients that ask why they found none.

    Those of `version` first. Raises InvalidInput.
    """
    check_key(key)
    rows = _visible(job.run).filter(key__startswith=key)
    fits = Case(When(version=version, then=Value(0)), default=Value(1))
    return rows.order_by(fits, "-finalized_at", "-pk")


def matches(run: Run, keys: Sequence[str], version: str) -> QuerySet[CacheEntry]:
    """All that fit, the best first. One statement, by the index of repository, version and key."""
    begins, exact = Q(), When(key=keys[0], then=Value(0))
    for key in keys:
        begins |= Q(key__startswith=key)
    by_key = [When(key__startswith=key, then=Value(rank)) for rank, key in enumerate(keys, start=1)]
    by_scope = [When(ref=ref, then=Value(rank)) for rank, ref in enumerate(readable_scopes(run))]
    rows = _visible(run).filter(begins, version=version).select_related("blob")
    return rows.order_by(Case(*by_scope), Case(exact, *by_key), "-finalized_at", "-pk")


def _visible(run: Run) -> QuerySet[CacheEntry]:
    return CacheEntry.objects.filter(
        repository=run.repository_id, ref__in=readable_scopes(run), finalized_at__isnull=False
    )


def _use(entry: CacheEntry) -> bool:
    """Note that it was used, at most once a minute; False where it has gone since."""
    now = timezone.now()
    if entry.last_used_at > now - USED_EVERY:
        return True
    rows = CacheEntry.objects.filter(pk=entry.pk)
    return bool(rows.filter(last_used_at__lt=now).update(last_used_at=now)) or rows.exists()

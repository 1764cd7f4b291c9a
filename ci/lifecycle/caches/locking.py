"""What does every write to a repository's caches share? One lock, the repository's row, and how an entry goes.

It comes before all other locks, and no transition takes it: none can wait in a circle with a write here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ci.lifecycle.errors import NotFound
from ci.models import CacheEntry
from ci.storage import blobs
from forge.models import Repository


def lock_caches(repository_id: int) -> Repository:
    """Whoever holds it is the only one who reserves, commits, evicts or deletes there. Raises NotFound."""
    try:
        return Repository.objects.select_for_update(no_key=True).get(pk=repository_id)
    except Repository.DoesNotExist:
        raise NotFound("There is no such repository; it may have been deleted.") from None


def remove(entries: Sequence[CacheEntry]) -> None:
    """Under the lock: the rows, then their bytes, which they protect."""
    CacheEntry.objects.filter(pk__in=[entry.pk for entry in entries]).delete()
    blobs.discard_all([entry.blob for entry in entries])

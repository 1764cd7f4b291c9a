"""How much may a repository's caches take, and how much do they?"""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Sum

from ci.lifecycle.errors import InvalidInput
from ci.lifecycle.storage_policies import policy
from ci.models import CacheEntry
from forge.models import Repository


class Usage(NamedTuple):
    """How many entries are committed, and the sum of their sizes in bytes."""

    entries: int
    size: int


def quota(repository: Repository) -> int:
    """In bytes: the repository's own, else the instance's."""
    own = policy(repository).cache_bytes
    return settings.CACHE_BYTES if own is None else own


def usage(repository: Repository) -> Usage:
    rows = CacheEntry.objects.filter(repository=repository, finalized_at__isnull=False)
    found = rows.aggregate(entries=Count("pk"), sum=Sum("size"))
    return Usage(found["entries"], int(found["sum"] or 0))


def check_fits(size: int, repository: Repository) -> None:
    """Whether an entry of `size` bytes could be kept if there were no other. Raises InvalidInput."""
    if size < 0:
        raise InvalidInput({"size": "A size is 0 bytes or more."})
    limit = min(quota(repository), settings.BLOB_BYTES)
    if size > limit:
        raise InvalidInput({"size": f"The cache has {size} bytes; one of this repository may have {limit} at most."})

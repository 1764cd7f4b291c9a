"""What do jobs keep for later runs, who sees it, and what goes when there is no more room? Cache entries."""

from ci.lifecycle.caches.commit import commit_cache, reservation
from ci.lifecycle.caches.delete import delete_cache, delete_caches
from ci.lifecycle.caches.evict import evict, evict_stale
from ci.lifecycle.caches.find import find_cache, visible_caches
from ci.lifecycle.caches.quota import Usage, quota, usage
from ci.lifecycle.caches.reserve import reserve_cache

__all__ = [
    "Usage",
    "commit_cache",
    "delete_cache",
    "delete_caches",
    "evict",
    "evict_stale",
    "find_cache",
    "quota",
    "reservation",
    "reserve_cache",
    "usage",
    "visible_caches",
]

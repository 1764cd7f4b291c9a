"""How does an owner delete caches? One by its number, or all of a key."""

from __future__ import annotations

from typing import Any

from ci.lifecycle import events
from ci.lifecycle.caches.locking import lock_caches, remove
from ci.lifecycle.errors import NotFound
from ci.lifecycle.transitions.guard import guarded
from ci.models import CacheEntry
from forge.models import Repository


def delete_cache(*, cache_id: int, actor: Any = None, by: str = "") -> None:
    """For a person, or for what `by` names. Raises NotFound."""
    repository_id = CacheEntry.objects.filter(pk=cache_id).values_list("repository", flat=True).first()
    if repository_id is None or not _delete(repository_id, actor, by, {"pk": cache_id}):
        raise NotFound("There is no such cache; it may have been deleted or evicted.")


def delete_caches(
    *, repository: Repository, key: str, ref: str | None = None, actor: Any = None, by: str = ""
) -> list[CacheEntry]:
    """Of every version, and of every ref or this one; what went. Raises NotFound where there is none."""
    deleted = _delete(repository.pk, actor, by, {"key": key, **({"ref": ref} if ref is not None else {})})
    if not deleted:
        raise NotFound(f"{repository} has no cache with the key {key}{f' for {ref}' if ref is not None else ''}.")
    return deleted


@guarded
def _delete(repository_id: int, actor: Any, by: str, which: dict[str, Any]) -> list[CacheEntry]:
    """Those as they were; nothing of a cache that is still being made."""
    repository = lock_caches(repository_id)
    rows = CacheEntry.objects.filter(repository=repository, finalized_at__isnull=False, **which)
    found = list(rows.select_related("blob").order_by("-last_used_at", "-pk"))
    remove(found)
    for entry in found:
        said = f"{entry.key} ({entry.ref}) of {repository}{f', by {by}' if by else ''}"
        events.record("cache_deleted", actor=actor, detail=said)
    return found

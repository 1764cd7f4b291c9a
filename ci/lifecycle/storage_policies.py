"""How long and how much may a repository keep? Its own policy says, or the instance's settings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.tasks import async_task

from ci.lifecycle import events
from ci.lifecycle.errors import InvalidInput
from ci.models import StoragePolicy
from forge.access import can_operate
from forge.models import Repository

# GitHub docs, "Configuring the retention period for GitHub Actions artifacts and logs in your repository".
MAX_ARTIFACT_DAYS = 400
MAX_CACHE_BYTES = 2**50


def policy(repository: Repository) -> StoragePolicy:
    """What the repository has of its own; fields that are None stand for the instance's settings."""
    found = StoragePolicy.objects.filter(repository=repository).first()
    return found or StoragePolicy(repository=repository)


def artifact_days(repository: Repository) -> int:
    """How long artifacts are kept: the default, and at once the longest that a workflow may ask for."""
    days = policy(repository).artifact_days
    return settings.ARTIFACT_DAYS if days is None else days


def set_policy(
    *, repository: Repository, artifact_days: int | None, cache_bytes: int | None, actor: Any
) -> StoragePolicy:
    """For artifacts made from now on, and for caches soon. None: as the instance's settings say.

    More for caches than these say, only an operator gives; others may leave it as it is. Raises InvalidInput.
    """
    errors = {}
    if artifact_days is not None and not 1 <= artifact_days <= MAX_ARTIFACT_DAYS:
        errors["artifact_days"] = f"Artifacts are kept for 1 to {MAX_ARTIFACT_DAYS} days."
    if cache_bytes is not None and not 0 <= cache_bytes <= MAX_CACHE_BYTES:
        errors["cache_bytes"] = f"The caches of a repository have 0 to {MAX_CACHE_BYTES} bytes together."
    elif cache_bytes is not None and not _may_give(repository, cache_bytes, actor):
        errors["cache_bytes"] = f"More than this instance's {settings.CACHE_BYTES} bytes only an operator can give."
    if errors:
        raise InvalidInput(errors)
    with transaction.atomic():
        made, _ = StoragePolicy.objects.update_or_create(
            repository=repository, defaults={"artifact_days": artifact_days, "cache_bytes": cache_bytes}
        )
        kept = f"artifact_days {artifact_days}, cache_bytes {cache_bytes}"
        events.record("storage_policy_set", actor=actor, detail=f"{repository}: {kept}")
        async_task("ci.lifecycle.tasks.evict_caches", repository.pk)
    return made


def _may_give(repository: Repository, cache_bytes: int, actor: Any) -> bool:
    if cache_bytes <= settings.CACHE_BYTES or actor is None or can_operate(actor):
        return True
    return cache_bytes == policy(repository).cache_bytes

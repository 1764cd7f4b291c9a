"""What do repositories keep? Artifacts and caches, to be looked at and deleted; their bytes, and how much they may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from ci.admin.readonly import Records, link, operates
from ci.lifecycle.artifacts import delete_artifact
from ci.lifecycle.caches import delete_cache
from ci.lifecycle.errors import LifecycleError
from ci.models import Artifact, Blob, CacheEntry, StoragePolicy


class Deletable(Records):
    """Rows that nothing but their deletion changes, so that there is no version to compare."""

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return operates(request, self.model)

    def each(self, request: HttpRequest, rows: QuerySet[Any], verb: Callable[[Any], None]) -> None:
        """One result message a row."""
        for row in rows:
            try:
                verb(row)
            except LifecycleError as error:
                messages.error(request, f"{row}: {error.detail}")
            else:
                messages.success(request, f"{row}: deleted.")


@admin.register(Artifact)
class ArtifactAdmin(Deletable):
    date_hierarchy = "created_at"
    list_display = ["name", "run_link", "attempt", "size", "created_at", "finalized_at", "expires_at"]
    list_filter = ["finalized_at", "expires_at"]
    list_select_related = ["run__repository__owner"]
    search_fields = ["name", "run__repository__name", "run__repository__owner__username"]
    fields = readonly_fields = (
        *("name", "run_link", "attempt", "job", "size", "digest", "blob"),
        *("created_at", "finalized_at", "expires_at"),
    )
    actions = ["delete_artifacts"]

    @admin.display(description="run")
    def run_link(self, artifact: Artifact) -> str:
        return link(artifact.run)

    @admin.action(description="Delete the chosen artifacts with their bytes", permissions=["operate"])
    def delete_artifacts(self, request: HttpRequest, queryset: QuerySet[Artifact]) -> None:
        self.each(request, queryset, lambda row: delete_artifact(artifact_id=row.pk, actor=request.user))


@admin.register(CacheEntry)
class CacheEntryAdmin(Deletable):
    date_hierarchy = "created_at"
    list_display = ["key", "repository", "ref", "size", "created_at", "last_used_at", "finalized_at"]
    list_filter = ["finalized_at", "last_used_at"]
    list_select_related = ["repository__owner"]
    search_fields = ["key", "repository__name", "repository__owner__username"]
    fields = readonly_fields = (
        *("key", "version", "repository", "ref", "job", "size", "blob"),
        *("created_at", "finalized_at", "last_used_at"),
    )
    actions = ["delete_caches"]

    @admin.action(description="Delete the chosen caches with their bytes", permissions=["operate"])
    def delete_caches(self, request: HttpRequest, queryset: QuerySet[CacheEntry]) -> None:
        self.each(request, queryset, lambda row: delete_cache(cache_id=row.pk, actor=request.user))


@admin.register(Blob)
class BlobAdmin(Records):
    date_hierarchy = "created_at"
    list_display = ["key", "size", "content_type", "created_at", "committed_at"]
    list_filter = ["committed_at"]
    search_fields = ["=key"]
    fields = readonly_fields = ("key", "size", "content_type", "content_encoding", "created_at", "committed_at")


@admin.register(StoragePolicy)
class StoragePolicyAdmin(Records):
    list_display = ["repository", "artifact_days", "cache_bytes"]
    list_select_related = ["repository__owner"]
    search_fields = ["repository__name", "repository__owner__username"]
    fields = readonly_fields = ("repository", "artifact_days", "cache_bytes")

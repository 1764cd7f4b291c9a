"""Which caches does a repository hold, how much do they take, and how are they deleted?

Addresses, names and shapes: GitHub docs, "REST API endpoints for GitHub Actions cache"."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.authentication import AccessTokenAuthentication, JobActorAuthentication
from ci.api.documentation import NOTHING, errors
from ci.api.owners.github_base import GitHubView
from ci.api.owners.github_lists import list_of, listed
from ci.lifecycle.caches import delete_cache, delete_caches, usage
from ci.models import CacheEntry
from forge.access import JobActor, can_write

_SORTS = {"created_at": "created_at", "last_accessed_at": "last_used_at", "size_in_bytes": "size"}
_REF = OpenApiParameter(
    "ref",
    {"type": "string", "maxLength": 1024},
    description="The whole ref: refs/heads/main, refs/pull/7/merge.",
)
_KEY = {"type": "string", "maxLength": 512}


class CacheShape(serializers.ModelSerializer[CacheEntry]):
    last_accessed_at = serializers.DateTimeField(source="last_used_at")
    size_in_bytes = serializers.IntegerField(source="size")

    class Meta:
        model = CacheEntry
        fields = ["id", "ref", "key", "version", "last_accessed_at", "created_at", "size_in_bytes"]


class CacheUsageShape(serializers.Serializer[Any]):
    full_name = serializers.CharField()
    active_caches_size_in_bytes = serializers.IntegerField()
    active_caches_count = serializers.IntegerField()


class _Which(serializers.Serializer[Any]):
    ref = serializers.CharField(max_length=1024, required=False, allow_blank=True, trim_whitespace=False)
    key = serializers.CharField(max_length=512, required=False, allow_blank=True, trim_whitespace=False)
    sort = serializers.ChoiceField(list(_SORTS), default="last_accessed_at")
    direction = serializers.ChoiceField(["asc", "desc"], default="desc")


class _Doomed(serializers.Serializer[Any]):
    key = serializers.CharField(max_length=512, trim_whitespace=False)
    ref = serializers.CharField(max_length=1024, required=False, trim_whitespace=False)


class CachesOwnersView(GitHubView):
    """What these views share. A running job may call them too, as far as its `actions` permission goes."""

    authentication_classes = [JobActorAuthentication, AccessTokenAuthentication, SessionAuthentication]

    @property
    def deleter(self) -> dict[str, Any]:
        """Who deletes, as the lifecycle wants to know it."""
        user: Any = self.request.user
        return {"by": user.name} if isinstance(user, JobActor) else {"actor": user}


class CachesView(CachesOwnersView):
    @extend_schema(
        summary="List caches",
        description="Those used last first.",
        tags=["caches"],
        **list_of(
            CacheShape,
            "actions_caches",
            400,
            parameters=[
                _REF,
                OpenApiParameter("key", _KEY, description="What the key begins with."),
                OpenApiParameter("sort", enum=list(_SORTS)),
                OpenApiParameter("direction", enum=["asc", "desc"]),
            ],
        ),
    )
    def get(self, request: Request, owner: str, repository: str) -> Response:
        rows = CacheEntry.objects.filter(repository=self.repository(), finalized_at__isnull=False)
        asked = self._asked(_Which)
        if asked.get("ref"):
            rows = rows.filter(ref=asked["ref"])
        if asked.get("key"):
            rows = rows.filter(key__startswith=asked["key"])
        sign = "-" if asked["direction"] == "desc" else ""
        return listed(self, rows.order_by(f"{sign}{_SORTS[asked['sort']]}", f"{sign}pk"), CacheShape, "actions_caches")

    @extend_schema(
        operation_id="delete_repos_actions_caches_of_a_key",
        summary="Delete the caches of a key",
        description="Of every version, and of every ref if none is given; answers what went.",
        tags=["caches"],
        parameters=[OpenApiParameter("key", _KEY, required=True, description="The whole key."), _REF],
        responses={
            200: inline_serializer(
                "DeletedCaches",
                {"total_count": serializers.IntegerField(), "actions_caches": CacheShape(many=True)},
            ),
            **errors(400, 401, 403, 404, 429),
        },
    )
    def delete(self, request: Request, owner: str, repository: str) -> Response:
        found = self.repository(need=can_write)
        gone = delete_caches(repository=found, **self.deleter, **self._asked(_Doomed))
        return Response({"total_count": len(gone), "actions_caches": CacheShape(gone, many=True).data})

    def _asked(self, shape: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The query, checked. Raises ValidationError."""
        query = shape(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        return query.validated_data


class CacheView(CachesOwnersView):
    @extend_schema(
        summary="Delete a cache",
        tags=["caches"],
        responses={204: NOTHING, **errors(401, 403, 404, 429)},
    )
    def delete(self, request: Request, owner: str, repository: str, cache_id: int) -> Response:
        found = self.repository(need=can_write)
        if not CacheEntry.objects.filter(repository=found, pk=cache_id).exists():
            raise Http404(f"There is no such cache in {found}.")
        delete_cache(cache_id=cache_id, **self.deleter)
        return Response(status=204)


class CacheUsageView(CachesOwnersView):
    @extend_schema(
        summary="Show how much the caches take",
        tags=["caches"],
        responses={200: CacheUsageShape, **errors(401, 404, 429)},
    )
    def get(self, request: Request, owner: str, repository: str) -> Response:
        found = self.repository()
        taken = usage(found)
        shown = {
            "full_name": str(found),
            "active_caches_size_in_bytes": taken.size,
            "active_caches_count": taken.entries,
        }
        return Response(CacheUsageShape(shown).data)

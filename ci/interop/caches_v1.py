"""How do older clients (@actions/cache before v2, or told so) keep and find caches? By REST below ACTIONS_CACHE_URL.

The bytes themselves come by PATCH, which WSGI cannot serve: ci/interop/cache_uploads.py."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import path

from ci.interop import fields
from ci.interop.caches_v2 import address
from ci.interop.rest_views import Answer, view
from ci.interop.runtime_calls import body_of
from ci.lifecycle import caches
from ci.lifecycle.errors import InvalidInput
from ci.models import CacheEntry, Job

BASE = "api/actions_cache/_apis/artifactcache/"
# Of a list that clients write to the log.
_MOST_LISTED = 100


def look_up(request: HttpRequest, job: Job) -> Answer:
    entry = caches.find_cache(
        job=job, keys=request.GET.get("keys", "").split(","), version=request.GET.get("version", "")
    )
    if entry is None:
        return 204, None
    return 200, {**_shape(entry), "archiveLocation": address(entry)}


def listed(request: HttpRequest, job: Job) -> Answer:
    """For clients that found nothing and ask why: what begins with the key, in other versions too."""
    rows = caches.visible_caches(job=job, key=request.GET.get("key", ""), version=request.GET.get("version", ""))
    found = [_shape(entry) for entry in rows[:_MOST_LISTED]]
    return 200, {"totalCount": len(found), "artifactCaches": found}


def reserve(request: HttpRequest, job: Job) -> Answer:
    given = body_of(request)
    entry = caches.reserve_cache(
        job=job,
        key=fields.text(given, "key"),
        version=fields.text(given, "version"),
        size=fields.number(given, "cacheSize"),
    )
    return 201, {"cacheId": entry.pk}


def commit(request: HttpRequest, job: Job, entry_id: int) -> Answer:
    size = fields.number(body_of(request), "size")
    if size is None:
        raise InvalidInput({"size": "Say how many bytes were uploaded."})
    caches.commit_cache(job=job, entry_id=entry_id, size=size)
    return 204, None


def _shape(entry: CacheEntry) -> dict[str, Any]:
    return {
        "cacheId": entry.pk,
        "scope": entry.ref,
        "cacheKey": entry.key,
        "cacheVersion": entry.version,
        "creationTime": entry.created_at.isoformat(),
        "cacheSize": entry.size,
    }


urlpatterns = [
    path(f"{BASE}cache", view({"GET": look_up})),
    path(f"{BASE}caches", view({"GET": listed, "POST": reserve})),
    path(f"{BASE}caches/<int:entry_id>", view({"POST": commit})),
]

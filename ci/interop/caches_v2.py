"""How do GitHub's clients of caches v2 (@actions/cache 4 and later) keep and find caches? CacheService, over twirp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.interop import fields
from ci.interop.twirp import Method
from ci.lifecycle import caches
from ci.models import CacheEntry, Job
from ci.storage import signed_urls

# A large one is fetched piece by piece, each with the same address.
_DOWNLOAD_SECONDS = 3600
# Fewer are allowed: how many, the look-up says.
_MOST_KEYS = 100


def create(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    entry = caches.reserve_cache(job=job, key=fields.text(given, "key"), version=fields.text(given, "version"))
    return {"ok": True, "signed_upload_url": signed_urls.upload_url(entry.blob)}


def finalize(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    entry = caches.commit_cache(
        job=job,
        key=fields.text(given, "key"),
        version=fields.text(given, "version"),
        size=fields.number(given, "size_bytes") or 0,
    )
    return {"ok": True, "entry_id": str(entry.pk)}


def find(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    keys = [fields.text(given, "key"), *fields.texts(given, "restore_keys", most=_MOST_KEYS)]
    entry = caches.find_cache(job=job, keys=keys, version=fields.text(given, "version"))
    if entry is None:
        return {"ok": False}
    return {"ok": True, "signed_download_url": address(entry), "matched_key": entry.key}


def address(entry: CacheEntry) -> str:
    return signed_urls.download_url(entry.blob, filename=f"cache-{entry.pk}", seconds=_DOWNLOAD_SECONDS)


METHODS: Mapping[str, Method] = {
    "CreateCacheEntry": create,
    "FinalizeCacheEntryUpload": finalize,
    "GetCacheEntryDownloadURL": find,
}

"""What do the caches of a repository hold, how much room is left, and who deletes them?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from ci.lifecycle.caches import delete_cache, quota, usage
from ci.lifecycle.errors import NotFound
from ci.models import CacheEntry
from ci.web.pages import around, paged, posted_number, tell
from ci.web.runs import known_workflows
from forge.access import can_write
from forge.web.loading import get_repository

MOST_SOUGHT = 512


@require_safe
def caches(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name)
    sought = request.GET.get("key", "")[:MOST_SOUGHT].replace("\0", "\ufffd")
    rows = CacheEntry.objects.filter(repository=repository, finalized_at__isnull=False)
    if sought:
        rows = rows.filter(key__startswith=sought)
    used, limit = usage(repository), quota(repository)
    context = around(
        repository,
        workflows=known_workflows(repository),
        page_obj=paged(request, rows),
        sought=sought,
        used=used,
        quota=limit,
        share=min(100, round(100 * used.size / limit)) if limit else 100,
        may_delete=can_write(request.user, repository),
        section="caches",
    )
    return render(request, "ci/caches.html", context)


@require_POST
def cache_delete(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name, need=can_write)
    cache_id = posted_number(request, "cache")

    def delete() -> str:
        found = CacheEntry.objects.filter(repository=repository, pk=cache_id).first()
        if found is None:
            raise NotFound("There is no such cache any more: it was deleted or evicted.")
        delete_cache(cache_id=found.pk, actor=request.user)
        return f"The cache {found.key} of {found.ref} is deleted."

    tell(request, delete)
    return redirect("caches", repository.owner.username, repository.name)

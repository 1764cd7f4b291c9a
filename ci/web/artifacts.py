"""What did a run keep, how is it downloaded, and who deletes it?"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from ci.lifecycle import artifact_downloads
from ci.lifecycle.artifacts import artifacts_of, delete_artifact, kept_by
from ci.lifecycle.errors import Expired
from ci.models import Artifact
from ci.web.pages import MAX_ID, paged, tell
from ci.web.run import frame, load_run
from forge.access import can_write
from forge.web.loading import get_repository


@require_safe
def run_artifacts(request: HttpRequest, owner: str, name: str, run_id: int) -> HttpResponse:
    repository = get_repository(request, owner, name)
    found = load_run(repository, run_id)
    context = frame(request, repository, found, attempt=found.attempt)
    context["page_obj"] = paged(request, kept_by(found, attempt=found.attempt), size=100)
    return render(request, "ci/run_artifacts.html", context)


@login_required
@never_cache
@require_safe
def artifact_download(request: HttpRequest, owner: str, name: str, run_id: int, artifact_id: int) -> HttpResponse:
    """Leads to an address that needs no further proof for ten minutes."""
    found = _load(request, owner, name, run_id, artifact_id)
    try:
        return HttpResponseRedirect(artifact_downloads.address(found))
    except Expired as error:
        return HttpResponse(error.detail, status=410, content_type="text/plain; charset=utf-8")


@require_POST
def artifact_delete(request: HttpRequest, owner: str, name: str, run_id: int, artifact_id: int) -> HttpResponse:
    found = _load(request, owner, name, run_id, artifact_id, need=can_write)

    def delete() -> str:
        delete_artifact(artifact_id=found.pk, actor=request.user)
        return f"The artifact {found.name} is deleted."

    tell(request, delete)
    return redirect("run", found.run.repository.owner.username, found.run.repository.name, run_id)


def _load(request: HttpRequest, owner: str, name: str, run_id: int, artifact_id: int, **need: Any) -> Artifact:
    """Raises Http404 where the run has no such artifact."""
    run = load_run(get_repository(request, owner, name, **need), run_id)
    found = artifacts_of(run).filter(pk=artifact_id).select_related("blob").first() if artifact_id <= MAX_ID else None
    if found is None:
        raise Http404("There is no such artifact; it may have been deleted.")
    found.run = run
    return found

"""Which branches and tags are there?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from forge.git import bare
from forge.git.bare import Ref
from forge.models import Repository
from forge.web.loading import get_repository
from forge.web.paging import Window, window
from forge.web.refs import Place
from forge.web.states import states_of

PAGE_SIZE = 50


@require_safe
def branches(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name)
    heads = window(request, lambda skip, limit: bare.branches(repository, skip=skip, limit=limit), size=PAGE_SIZE)
    tags = window(
        request,
        lambda skip, limit: bare.tags(repository, skip=skip, limit=limit),
        size=PAGE_SIZE,
        parameter="tags_page",
    )
    states = states_of(repository, list({ref.sha for ref in [*heads.items, *tags.items]}))

    def rows(page: Window, kind: str) -> list[tuple[Ref, str, object]]:
        return [(ref, _url(repository, ref, kind), states.get(ref.sha)) for ref in page.items]

    context = {
        "repository": repository,
        "branches": rows(heads, "branch"),
        "branches_window": heads,
        "branch_count": bare.count_branches(repository),
        "tags": rows(tags, "tag"),
        "tags_window": tags,
        "tag_count": bare.count_tags(repository),
    }
    return render(request, "forge/branches.html", context)


def _url(repository: Repository, ref: Ref, kind: str) -> str:
    return Place(repository, ref.name, kind, ref.sha, "").tree_url

"""Which repositories are there? The start page and the page of an owner."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from forge.access import readable_repositories
from forge.models import Repository

PAGE_SIZE = 30


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """One's own repositories first, for whoever is signed in; for everybody else the public ones."""
    own = request.user.is_authenticated and request.GET.get("show") != "all"
    repositories = readable_repositories(request.user)
    if own:
        repositories = repositories.filter(Q(owner=request.user.pk) | Q(members__user=request.user.pk)).distinct()
    return _listed(request, "forge/home.html", repositories, {"own": own})


@require_safe
def owner(request: HttpRequest, owner: str) -> HttpResponse:
    account = (
        get_user_model().objects.filter(username__iexact=owner, is_active=True).first() if "\0" not in owner else None
    )
    if account is None:
        raise Http404("There is no such owner.")
    repositories = readable_repositories(request.user).filter(owner=account)
    return _listed(request, "forge/owner.html", repositories, {"account": account})


def _listed(
    request: HttpRequest, template: str, repositories: QuerySet[Repository], context: dict[str, object]
) -> HttpResponse:
    query = request.GET.get("q", "").replace("\0", "").strip()[:200]
    for word in query.replace("/", " ").split()[:8]:
        repositories = repositories.filter(
            Q(name__icontains=word) | Q(description__icontains=word) | Q(owner__username__icontains=word)
        )
    # A repository counts as new until its first push, so that it is found where one has just made it.
    ordered = repositories.order_by(F("pushed_at").desc(nulls_first=True), "-created_at", "-pk")
    page = Paginator(ordered, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, template, {"page_obj": page, "query": query, **context})

"""How does a repository's admin change or delete it?"""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from forge.access import can_administer
from forge.git import bare
from forge.models import Repository
from forge.repositories import delete_repository, set_default_branch
from forge.web.forms import DeleteRepositoryForm, RepositoryForm
from forge.web.loading import get_repository

MAX_BRANCHES = 1000


@require_http_methods(["GET", "HEAD", "POST"])
def repository_settings(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """Description, visibility and default branch."""
    repository = get_repository(request, owner, name, need=can_administer)
    form = RepositoryForm(
        request.POST if request.method == "POST" else None, repository=repository, branches=_branches(repository)
    )
    if request.method == "POST" and form.is_valid():
        try:
            _save(repository, form)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, "Saved.")
            return redirect("repository_settings", repository.owner.username, repository.name)
    return _page(request, repository, form, DeleteRepositoryForm(repository=repository))


@require_POST
def repository_delete(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name, need=can_administer)
    form = DeleteRepositoryForm(request.POST, repository=repository)
    if form.is_valid():
        delete_repository(repository=repository)
        messages.success(request, f"{repository} was deleted.")
        return redirect("home")
    unchanged = RepositoryForm(repository=repository, branches=_branches(repository))
    return _page(request, repository, unchanged, form)


def _branches(repository: Repository) -> list[str]:
    return [ref.name for ref in bare.branches(repository, limit=MAX_BRANCHES)]


def _save(repository: Repository, form: RepositoryForm) -> None:
    branch = form.cleaned_data["default_branch"]
    if branch != repository.default_branch:
        set_default_branch(repository=repository, branch=branch)
    Repository.objects.filter(pk=repository.pk).update(
        description=form.cleaned_data["description"], private=form.cleaned_data["private"]
    )


def _page(
    request: HttpRequest, repository: Repository, form: RepositoryForm, delete_form: DeleteRepositoryForm
) -> HttpResponse:
    context = {"repository": repository, "form": form, "delete_form": delete_form}
    bad = form.errors or delete_form.errors
    return render(request, "forge/settings.html", context, status=422 if bad else 200)

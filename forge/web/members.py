"""Who else may use a repository, and how?"""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from forge.access import can_administer
from forge.models import Member, Repository
from forge.web.forms import NewMemberForm, RoleForm
from forge.web.loading import get_repository

PAGE_SIZE = 50


@require_http_methods(["GET", "HEAD", "POST"])
def members(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """The list of members, and the form that adds one."""
    repository = get_repository(request, owner, name, need=can_administer)
    form = NewMemberForm(request.POST if request.method == "POST" else None, repository=repository)
    if request.method == "POST" and form.is_valid():
        # Two admins may add the same person at once; the later one finds a member and sets the role.
        Member.objects.update_or_create(
            repository=repository, user=form.member, defaults={"role": form.cleaned_data["role"]}
        )
        messages.success(request, f"{form.member} is now a member ({form.cleaned_data['role']}).")
        return _back(repository)
    page = Paginator(repository.members.select_related("user"), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"repository": repository, "form": form, "page_obj": page, "roles": Member.Role.choices}
    return render(request, "forge/members.html", context, status=422 if form.errors else 200)


@require_POST
def member_role(request: HttpRequest, owner: str, name: str, member_id: int) -> HttpResponse:
    repository = get_repository(request, owner, name, need=can_administer)
    member = get_object_or_404(repository.members.select_related("user"), pk=member_id)
    form = RoleForm(request.POST)
    if form.is_valid() and repository.members.filter(pk=member.pk).update(role=form.cleaned_data["role"]):
        messages.success(request, f"{member.user} now has the role {form.cleaned_data['role']}.")
    else:
        messages.error(request, f"Nothing was changed: choose one of the roles in the list for {member.user}.")
    return _back(repository)


@require_POST
def member_remove(request: HttpRequest, owner: str, name: str, member_id: int) -> HttpResponse:
    repository = get_repository(request, owner, name, need=can_administer)
    member = get_object_or_404(repository.members.select_related("user"), pk=member_id)
    member.delete()
    messages.success(request, f"{member.user} is no longer a member.")
    # Whoever removes themselves may not see the list any more.
    if not can_administer(request.user, repository):
        return redirect("home")
    return _back(repository)


def _back(repository: Repository) -> HttpResponse:
    return redirect("members", repository.owner.username, repository.name)

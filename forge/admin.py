"""What may the operator see and do of the forge's rows? Repositories come and go with their folders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from forge.git import bare
from forge.git.names import is_branch_name
from forge.models import AccessToken, Member, Push, Repository
from forge.repositories import create_repository, delete_repository, rename_repository, set_default_branch


class RepositoryForm(forms.ModelForm):
    """The branch and the name are checked here, where it can still be told beside their fields."""

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        owner = self.cleaned_data.get("owner") or (self.instance.owner if self.instance.pk else None)
        same = Repository.objects.filter(owner=owner, name__iexact=name).exclude(pk=self.instance.pk)
        if owner is not None and same.exists():
            raise forms.ValidationError(f"{owner} already has a repository named {name}.")
        return name

    def clean_default_branch(self) -> str:
        branch = str(self.cleaned_data["default_branch"])
        if not is_branch_name(branch):
            raise forms.ValidationError(f"{branch!r} cannot name a branch.")
        if (
            self.instance.pk
            and branch != self.instance.default_branch
            and not bare.is_empty(self.instance)
            and bare.ref_sha(self.instance, f"refs/heads/{branch}") is None
        ):
            raise forms.ValidationError(f"There is no branch {branch}. Push it first.")
        return branch


class MemberInline(admin.TabularInline):
    model = Member
    extra = 0
    raw_id_fields = ["user"]


@admin.register(Repository)
class RepositoryAdmin(admin.ModelAdmin):
    """Every write goes through forge.repositories, so that row and folder stay together."""

    form = RepositoryForm
    fields = ["owner", "name", "description", "private", "default_branch", "created_at", "pushed_at"]
    list_display = ["__str__", "private", "default_branch", "created_at", "pushed_at"]
    list_filter = ["private", "created_at"]
    list_select_related = ["owner"]
    search_fields = ["name", "owner__username", "description"]
    date_hierarchy = "created_at"
    raw_id_fields = ["owner"]
    inlines = [MemberInline]
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Repository]:
        return super().get_queryset(request).select_related("owner")

    def get_readonly_fields(self, request: HttpRequest, obj: Repository | None = None) -> list[str]:
        fixed = ["created_at", "pushed_at"]
        return fixed if obj is None else [*fixed, "owner"]

    def get_inlines(self, request: HttpRequest, obj: Repository | None) -> Any:
        return self.inlines if obj is not None else []

    def get_view_on_site_url(self, obj: Any = None) -> str | None:
        return obj.get_absolute_url() if obj is not None and obj.pk else None

    def save_model(self, request: HttpRequest, obj: Repository, form: Any, change: bool) -> None:
        if change:
            _change(obj, form.changed_data)
            return
        names = ("owner", "name", "private", "description", "default_branch")
        made = create_repository(**{name: form.cleaned_data[name] for name in names})
        obj.pk, obj._state.adding = made.pk, False

    def delete_model(self, request: HttpRequest, obj: Repository) -> None:
        delete_repository(repository=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Repository]) -> None:
        for repository in queryset:
            delete_repository(repository=repository)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """What only the write itself can find out, such as a name taken a moment ago, changes nothing and is told."""
        view: Callable[..., HttpResponse] = super().changeform_view
        try:
            return view(request, *args, **kwargs)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return redirect(request.get_full_path())


def _change(repository: Repository, changed: list[str]) -> None:
    """Write the changed fields of a repository that the form has already filled with the new values."""
    stored = Repository.objects.select_related("owner").get(pk=repository.pk)
    if "name" in changed:
        rename_repository(repository=stored, name=repository.name)
    if "default_branch" in changed:
        set_default_branch(repository=stored, branch=repository.default_branch)
    plain = {name: getattr(repository, name) for name in ("description", "private") if name in changed}
    if plain:
        Repository.objects.filter(pk=repository.pk).update(**plain)


@admin.register(Member)
class MemberAdmin(admin.ModelAdmin):
    date_hierarchy = "created_at"
    list_display = ["user", "repository", "role", "created_at"]
    list_filter = ["role"]
    list_select_related = ["user", "repository__owner"]
    search_fields = ["user__username", "repository__name", "repository__owner__username"]
    raw_id_fields = ["user", "repository"]
    readonly_fields = ["created_at"]


@admin.register(AccessToken)
class AccessTokenAdmin(admin.ModelAdmin):
    """To be looked at and revoked (deleted), never made: only its person may see a token."""

    fields = readonly_fields = ("user", "name", "hint", "created_at", "expires_at", "last_used_at")
    list_display = ["name", "user", "hint", "created_at", "expires_at", "last_used_at"]
    list_filter = ["expires_at", "last_used_at"]
    list_select_related = ["user"]
    search_fields = ["name", "user__username", "hint"]
    date_hierarchy = "created_at"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Push)
class PushAdmin(admin.ModelAdmin):
    """What git did is not up for change."""

    fields = readonly_fields = (
        *("repository", "ref", "before", "after", "forced", "pusher", "pusher_name", "by_job", "state"),
        *("created_at", "settled_at", "planned_at"),
    )
    list_display = ["ref", "repository", "pusher_name", "before_short", "after_short", "state", "created_at"]
    list_filter = ["state", "forced", "by_job", "created_at"]
    list_select_related = ["repository__owner"]
    search_fields = ["ref", "after", "before", "pusher_name", "repository__name", "repository__owner__username"]
    date_hierarchy = "created_at"
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="before")
    def before_short(self, push: Push) -> str:
        return push.before[:10]

    @admin.display(description="after")
    def after_short(self, push: Push) -> str:
        return push.after[:10]

"""How does the operator describe a runner set?"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from ci.admin.inlines import EventsOfRunnerSet
from ci.admin.readonly import state_chip
from ci.admin.runners import scope
from ci.admin.versions import VersionedActions, VersionedForm
from ci.lifecycle.errors import LifecycleError
from ci.lifecycle.runner_sets import EDITABLE, delete_runner_set, save_runner_set
from ci.models import RunnerSet


class RunnerSetForm(VersionedForm):
    class Meta:
        model = RunnerSet
        fields = ["name", "owner", "repository", "labels", "minimum", "maximum", "launcher", "template", "version"]
        help_texts = {
            "labels": "Separated by commas.",
            "owner": "Whom it serves; with neither owner nor repository it serves the whole instance.",
            "template": "What the launcher needs to know, as JSON.",
        }


@admin.register(RunnerSet)
class RunnerSetAdmin(VersionedActions):
    form = RunnerSetForm
    list_display = ["name", "phase_now", scope, "label_list", "minimum", "maximum", "desired", "launcher"]
    list_filter = ["phase", "launcher"]
    list_select_related = ["owner", "repository__owner"]
    search_fields = ["name", "labels", "owner__username", "repository__name"]
    date_hierarchy = "created_at"
    raw_id_fields = ["owner", "repository"]
    inlines = [EventsOfRunnerSet]
    fields = [
        *("name", "owner", "repository", "labels", "minimum", "maximum", "launcher", "template"),
        *("phase", "desired", "spec_revision", "created_at", "version"),
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: RunnerSet | None = None) -> list[str]:
        fixed = ["phase", "desired", "spec_revision", "created_at"]
        return fixed if obj is None else [*fixed, "owner", "repository"]

    def get_inlines(self, request: HttpRequest, obj: RunnerSet | None) -> Any:
        return self.inlines if obj is not None else []

    def save_model(self, request: HttpRequest, obj: RunnerSet, form: Any, change: bool) -> None:
        fields = {name: value for name, value in form.cleaned_data.items() if name in EDITABLE}
        # A form without its version fits no row.
        version = form.cleaned_data.get("version")
        saved = save_runner_set(
            runner_set_id=obj.pk,
            fields=fields,
            version=(-1 if version is None else version) if change else None,
            actor=request.user,
        )
        obj.pk, obj._state.adding = saved.pk, False

    def delete_model(self, request: HttpRequest, obj: RunnerSet) -> None:
        delete_runner_set(runner_set_id=obj.pk, version=obj.version, actor=request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[RunnerSet]) -> None:
        for runner_set in queryset:
            try:
                self.delete_model(request, runner_set)
            except LifecycleError as error:
                self.message_user(request, error.detail, messages.ERROR)

    @admin.display(description="phase", ordering="phase")
    def phase_now(self, runner_set: RunnerSet) -> SafeString:
        return state_chip(runner_set.phase)

    @admin.display(description="labels")
    def label_list(self, runner_set: RunnerSet) -> str:
        return ", ".join(runner_set.labels)

"""How does the operator describe a runner set, see what it does, and recover or delete it?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from ci.admin.inlines import EventsOfRunnerSet, RunnersOfSet
from ci.admin.readonly import state_chip
from ci.admin.runners import scope
from ci.admin.versions import VersionedActions, VersionedForm
from ci.lifecycle import set_templates
from ci.lifecycle.runner_sets import EDITABLE, save_runner_set
from ci.lifecycle.set_counts import counted
from ci.lifecycle.transitions import delete_set, recover_set
from ci.models import RunnerSet

_COUNTS = ("busy", "idle", "starting", "leaving")


class RunnerSetForm(VersionedForm):
    actor: Any = None

    class Meta:
        model = RunnerSet
        fields = [
            *("name", "owner", "repository", "repositories", "labels", "minimum", "maximum", "maximum_per_repository"),
            *("launcher", "template", "version"),
        ]
        help_texts = {
            "labels": "Separated by commas.",
            "owner": "Whom it serves; with neither owner nor repository it serves the whole instance.",
            "template": "What the launcher needs to know, as JSON: docs/launchers.md lists its keys.",
        }

    def clean(self) -> dict[str, Any]:
        """What the lifecycle would refuse, told beside the field while the rest of the form is kept."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        minimum, maximum = cleaned.get("minimum"), cleaned.get("maximum")
        if minimum is not None and maximum is not None and minimum > maximum:
            self.add_error("minimum", "The minimum is above the maximum.")
        if "launcher" in cleaned and "template" in cleaned and {"launcher", "template"} & set(self.changed_data):
            wrong = set_templates.problems(
                launcher=cleaned["launcher"], template=cleaned["template"] or {}, actor=self.actor
            )
            for field, text in wrong.items():
                self.add_error(field, text.split("\n"))
        return cleaned

    def clean_template(self) -> Any:
        """An empty field is an empty object."""
        given = self.cleaned_data["template"]
        return {} if given is None else given


class InTrouble(admin.SimpleListFilter):
    title = "trouble"
    parameter_name = "trouble"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Something does not start"), ("slow", "It starts one at a time"), ("no", "None")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunnerSet]) -> QuerySet[RunnerSet]:
        if self.value() == "yes":
            return queryset.exclude(trouble="")
        if self.value() == "slow":
            return queryset.filter(troubled_until__isnull=False)
        return queryset.filter(trouble="") if self.value() == "no" else queryset


@admin.register(RunnerSet)
class RunnerSetAdmin(VersionedActions):
    form = RunnerSetForm
    list_display = [
        *("name", "phase_now", scope, "label_list", "launcher", "minimum", "maximum", "desired", "assigned"),
        *("busy", "idle", "starting", "trouble"),
    ]
    list_filter = ["phase", InTrouble, "launcher"]
    list_select_related = ["owner", "repository__owner"]
    search_fields = ["name", "labels", "owner__username", "repository__name", "trouble"]
    date_hierarchy = "created_at"
    raw_id_fields = ["owner", "repository", "repositories"]
    inlines = [RunnersOfSet, EventsOfRunnerSet]
    actions = ["recover", "delete_in_order", "delete_by_force"]
    fixed = (
        *("phase", "desired", "assigned", *_COUNTS, "on_new_revision", "spec_revision", "trouble", "troubled_until"),
        *("parked_at", "deleting_at", "wake_at", "created_at"),
    )

    def get_fields(self, request: HttpRequest, obj: RunnerSet | None = None) -> Any:
        return [*RunnerSetForm.Meta.fields, *(self.fixed if obj is not None else ())]

    def get_readonly_fields(self, request: HttpRequest, obj: RunnerSet | None = None) -> list[str]:
        return [*self.fixed, *(("owner", "repository") if obj is not None else ())]

    def get_inlines(self, request: HttpRequest, obj: RunnerSet | None) -> Any:
        return self.inlines if obj is not None else []

    def get_queryset(self, request: HttpRequest) -> QuerySet[RunnerSet]:
        return counted(super().get_queryset(request))

    def get_form(self, request: HttpRequest, obj: RunnerSet | None = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change, **options)
        return type(form.__name__, (form,), {"actor": request.user})

    def has_delete_permission(self, request: HttpRequest, obj: RunnerSet | None = None) -> bool:
        """Its runners go first: by the actions."""
        return False

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

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Without form.save_m2m(): save_model has saved the repositories too, under the version."""
        for formset in formsets:
            self.save_formset(request, form, formset, change=change)

    @admin.action(description="Recover", permissions=["operate"])
    def recover(self, request: HttpRequest, queryset: QuerySet[RunnerSet]) -> HttpResponse | None:
        def verb(runner_set: RunnerSet, version: int | None) -> str:
            recover_set(set_id=runner_set.pk, actor=request.user, version=version)
            return "starts runners again"

        return self.each(request, queryset, verb)

    @admin.action(description="Delete when its jobs have ended", permissions=["operate"])
    def delete_in_order(self, request: HttpRequest, queryset: QuerySet[RunnerSet]) -> HttpResponse | None:
        return self.each(request, queryset, self._deletion(request, force=False))

    @admin.action(description="Delete now: its jobs are lost", permissions=["operate"])
    def delete_by_force(self, request: HttpRequest, queryset: QuerySet[RunnerSet]) -> HttpResponse | None:
        return self.each(request, queryset, self._deletion(request, force=True))

    def _deletion(self, request: HttpRequest, *, force: bool) -> Callable[[RunnerSet, int | None], str]:
        def verb(runner_set: RunnerSet, version: int | None) -> str:
            delete_set(set_id=runner_set.pk, actor=request.user, version=version, force=force)
            return "its runners are being ended, then it is deleted"

        return verb

    @admin.display(description="phase", ordering="phase")
    def phase_now(self, runner_set: RunnerSet) -> SafeString:
        return state_chip(runner_set.phase)

    @admin.display(description="labels")
    def label_list(self, runner_set: RunnerSet) -> str:
        return ", ".join(runner_set.labels)

    @admin.display(ordering="busy")
    def busy(self, runner_set: Any) -> int:
        return int(runner_set.busy)

    @admin.display(ordering="idle")
    def idle(self, runner_set: Any) -> int:
        return int(runner_set.idle)

    @admin.display(ordering="starting")
    def starting(self, runner_set: Any) -> int:
        return int(runner_set.starting)

    @admin.display(description="leaving")
    def leaving(self, runner_set: Any) -> int:
        return int(runner_set.leaving)

    @admin.display(description="on the new revision")
    def on_new_revision(self, runner_set: Any) -> str:
        return f"{runner_set.current} of {runner_set.busy + runner_set.idle + runner_set.starting}"

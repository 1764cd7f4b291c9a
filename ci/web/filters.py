"""Which runs does a list show? Those that its filters let through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ci.lifecycle.run_search import of_branch, of_state
from ci.models import Run, RunConclusion, RunState, Workflow

_STATES = [
    ("", "Any state"),
    ("active", "Not ended"),
    *((value, label) for value, label in RunState.choices if value != RunState.ENDED),
    *RunConclusion.choices,
]
_EVENTS = ("push", "schedule", "workflow_dispatch")


class PlainSelect(forms.Select):
    """As Django's, without a template for each of its options."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        chosen = {str(one) for one in self.format_value(value)}
        options = (
            (option, SafeString(" selected") if str(option) in chosen else "", label) for option, label in self.choices
        )
        return format_html(
            '<select name="{}"{}>{}</select>',
            name,
            flatatt(self.build_attrs(self.attrs, attrs)),
            format_html_join("", '<option value="{}"{}>{}</option>', options),
        )


class RunFilters(forms.Form):
    """Filters come from the address; what makes no sense there filters nothing away but itself."""

    workflow = forms.ChoiceField(required=False, widget=PlainSelect)
    branch = forms.CharField(required=False, max_length=255)
    event = forms.ChoiceField(required=False, widget=PlainSelect)
    actor = forms.CharField(required=False, max_length=150)
    state = forms.ChoiceField(required=False, choices=_STATES, widget=PlainSelect)

    def __init__(self, data: Any, *, workflows: Iterable[Workflow], fixed_workflow: bool = False) -> None:
        super().__init__(data, auto_id="filter_%s")
        workflows = list(workflows)
        self._workflows: dict[str, list[int]] = {}  # by file, so that an index leads to their runs
        if fixed_workflow:
            del self.fields["workflow"]
        else:
            names = [(workflow.path.rpartition("/")[2], workflow.name) for workflow in workflows]
            for workflow, (file, _) in zip(workflows, names, strict=True):
                self._workflows.setdefault(file, []).append(workflow.pk)
            self.fields["workflow"].choices = [("", "Any workflow"), *names]  # type: ignore[attr-defined]
        events = sorted({*_EVENTS, *(event for workflow in workflows for event in workflow.events)})
        self.fields["event"].choices = [("", "Any event"), *((event, event) for event in events)]  # type: ignore[attr-defined]

    @property
    def in_use(self) -> bool:
        return any(self.data.get(name) for name in self.fields)

    def apply(self, runs: QuerySet[Run]) -> QuerySet[Run]:
        self.is_valid()
        asked = self.cleaned_data
        if self.errors:
            return runs.none()
        if file := asked.get("workflow"):
            runs = runs.filter(workflow__in=self._workflows[file])
        if branch := asked["branch"]:
            runs = of_branch(runs, branch)
        if event := asked["event"]:
            runs = runs.filter(event=event)
        if actor := asked["actor"]:
            runs = runs.filter(actor_name__iexact=actor)
        return of_state(runs, asked["state"]) if asked["state"] else runs

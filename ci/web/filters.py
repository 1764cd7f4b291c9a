"""Which runs does a list show? Those that its filters let through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.db.models import Q, QuerySet

from ci.models import Run, RunConclusion, RunState, Workflow

_STATES = [
    ("", "Any state"),
    ("active", "Not ended"),
    *((value, label) for value, label in RunState.choices if value != RunState.ENDED),
    *RunConclusion.choices,
]
_EVENTS = ("push", "schedule", "workflow_dispatch")


class RunFilters(forms.Form):
    """Filters come from the address; what makes no sense there filters nothing away but itself."""

    workflow = forms.ChoiceField(required=False)
    branch = forms.CharField(required=False, max_length=255)
    event = forms.ChoiceField(required=False)
    actor = forms.CharField(required=False, max_length=150)
    state = forms.ChoiceField(required=False, choices=_STATES)

    def __init__(self, data: Any, *, workflows: Iterable[Workflow], fixed_workflow: bool = False) -> None:
        super().__init__(data, auto_id="filter_%s")
        workflows = list(workflows)
        if fixed_workflow:
            del self.fields["workflow"]
        else:
            names = [(workflow.path.rpartition("/")[2], workflow.name) for workflow in workflows]
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
            runs = runs.filter(workflow_path__endswith=f"/{file}")
        if branch := asked["branch"]:
            runs = runs.filter(ref__in=[branch, f"refs/heads/{branch}", f"refs/tags/{branch}"])
        if event := asked["event"]:
            runs = runs.filter(event=event)
        if actor := asked["actor"]:
            runs = runs.filter(actor_name__iexact=actor)
        return runs.filter(_in_state(asked["state"]))


def _in_state(state: str) -> Q:
    if not state:
        return Q()
    if state == "active":
        return ~Q(state=RunState.ENDED)
    return Q(conclusion=state) if state in RunConclusion.values else Q(state=state)

"""What was deployed from this repository, and where can it be seen?"""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ci.lifecycle.deployments import deployments as deployments_of
from ci.models import DeploymentState, Environment
from ci.web.pages import around, paged
from ci.web.runs import known_workflows
from forge.models import Repository
from forge.web.loading import get_repository

# More would make no list to choose from; an address may name any of them.
MOST_ENVIRONMENTS = 200


class DeploymentFilters(forms.Form):
    """Filters come from the address; one that makes no sense finds nothing."""

    environment = forms.ChoiceField(required=False)
    state = forms.ChoiceField(required=False, choices=[("", "Any state"), *DeploymentState.choices])

    def __init__(self, data: Any, *, repository: Repository) -> None:
        super().__init__(data, auto_id="filter_%s")
        rows = Environment.objects.filter(repository=repository).order_by("name")
        names = list(rows.values_list("name", flat=True)[:MOST_ENVIRONMENTS])
        asked = str(self.data.get("environment") or "")
        if asked and asked not in names and "\0" not in asked and rows.filter(name=asked).exists():
            names.append(asked)
        self.fields["environment"].choices = [("", "Any"), *((name, name) for name in names)]  # type: ignore[attr-defined]

    @property
    def in_use(self) -> bool:
        return any(self.data.get(name) for name in self.fields)

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        if not self.is_valid():
            return rows.none()
        if environment := self.cleaned_data["environment"]:
            rows = rows.filter(environment__name=environment)
        if state := self.cleaned_data["state"]:
            rows = rows.filter(deployment_state=state)
        return rows


@require_safe
def deployments(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name)
    filters = DeploymentFilters(request.GET, repository=repository)
    rows = deployments_of(repository).select_related("run", "environment")
    rows = rows.defer("definition", "outputs", "call_inputs", "run__payload", "run__inputs", "run__env")
    context = around(
        repository,
        workflows=known_workflows(repository),
        filters=filters,
        page_obj=paged(request, filters.apply(rows)),
        section="deployments",
    )
    return render(request, "ci/deployments.html", context)

"""Which runs does this repository have?"""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ci.lifecycle.fired_events import never_fired
from ci.models import Run, Workflow
from ci.web.filters import RunFilters
from ci.web.pages import around, paged
from forge.models import Repository
from forge.web.loading import get_repository


@require_safe
def runs(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name)
    workflows = known_workflows(repository)
    filters = RunFilters(request.GET, workflows=workflows)
    found = paged(request, filters.apply(listed(repository)))
    return render(
        request,
        "ci/runs.html",
        around(
            repository,
            workflows=workflows,
            filters=filters,
            page_obj=found,
            unfired=[(row, events) for row in workflows if (events := never_fired(row.events))],
        ),
    )


def known_workflows(repository: Repository) -> list[Workflow]:
    """Those on the default branch, and those that once ran; the former first."""
    rows = Workflow.objects.filter(repository=repository).order_by("-on_default_branch", "name", "path")
    return [row for row in rows[:200] if row.on_default_branch or row.run_count]


def listed(repository: Repository) -> QuerySet[Run]:
    """The repository's runs, newest first, without the columns that can be long."""
    return Run.objects.filter(repository=repository).defer(
        "payload", "inputs", "env", "defaults", "problems", "permissions"
    )

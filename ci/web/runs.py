"""Which runs does this repository have?"""

from __future__ import annotations

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import cached_property
from django.views.decorators.http import require_safe

from ci.lifecycle.fired_events import never_fired
from ci.models import Run, Workflow
from ci.web.addresses import Addresses
from ci.web.filters import RunFilters
from ci.web.pages import around, number
from forge.models import Repository
from forge.web.loading import get_repository

PAGE = 30
MOST_COUNTED = 1020  # whole pages


@require_safe
def runs(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name)
    workflows = known_workflows(repository)
    filters = RunFilters(request.GET, workflows=workflows)
    found = paged_runs(request, filters.apply(listed(repository)))
    return render(
        request,
        "ci/runs.html",
        around(
            repository,
            workflows=workflows,
            filters=filters,
            page_obj=found,
            addresses=Addresses("run", repository.owner.username, repository.name),
            unfired=[(row, events) for row in workflows if (events := never_fired(row.events))],
        ),
    )


class RunPaginator(Paginator):
    """Of runs, newest first. To count them all would take longer the more there are: beyond MOST_COUNTED a list goes on
    with `?before=`, the number of the oldest run that was shown."""

    object_list: QuerySet[Run]

    @cached_property
    def _counted(self) -> int:
        return self.object_list.order_by().values("pk")[: MOST_COUNTED + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._counted, MOST_COUNTED)

    @property
    def has_older(self) -> bool:
        """Whether there are runs beyond the last page."""
        return self._counted > MOST_COUNTED


def paged_runs(request: HttpRequest, rows: QuerySet[Run]) -> Page[Run]:
    """The page that `?page=` asks for, the first or last where that makes no sense; of runs older than `?before=`."""
    before = number(request.GET.get("before"))
    return RunPaginator(rows if before is None else rows.filter(pk__lt=before), PAGE).get_page(request.GET.get("page"))


def known_workflows(repository: Repository) -> list[Workflow]:
    """Those on the default branch, and those that once ran; the former first."""
    rows = Workflow.objects.filter(repository=repository).order_by("-on_default_branch", "name", "path")
    return [row for row in rows[:200] if row.on_default_branch or row.run_count]


def listed(repository: Repository) -> QuerySet[Run]:
    """The repository's runs, newest first, without the columns that can be long."""
    return Run.objects.filter(repository=repository).defer(
        "payload", "inputs", "env", "defaults", "problems", "permissions"
    )

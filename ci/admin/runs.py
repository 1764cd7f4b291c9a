"""Which runs are there, and how does the operator cancel one or run it again?"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from ci.admin.inlines import AttemptInline, EventsOfRun, JobInline
from ci.admin.readonly import ReadOnly
from ci.admin.versions import VersionedActions
from ci.lifecycle import transitions
from ci.models import Run


@admin.register(Run)
class RunAdmin(ReadOnly, VersionedActions):
    list_display = ["__str__", "state_now", "title", "repository", "event", "ref_name", "actor_name", "created_at"]
    list_filter = ["state", "conclusion", "event", "created_at"]
    list_select_related = ["repository__owner"]
    search_fields = [
        *("title", "workflow_name", "sha", "ref", "actor_name", "repository__name", "repository__owner__username"),
    ]
    date_hierarchy = "created_at"
    inlines = [JobInline, AttemptInline, EventsOfRun]
    actions = ["cancel", "force_cancel", "rerun", "rerun_failed", "approve"]
    fields = readonly_fields = (
        *("repository", "workflow", "workflow_path", "number", "attempt", "title"),
        *("state_now", "conclusion", "problems", "approval_pending"),
        *("event", "ref", "sha", "push", "schedule", "scheduled_for", "source_run", "source_action", "inputs"),
        *("actor", "actor_name", "triggered_by_name", "trusted", "concurrency_group"),
        *("cancel_reason", "cancel_requested_at", "cancelled_by"),
        *("created_at", "started_at", "ended_at", "version"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        # The payload of a push can be large, and no page of the admin shows it.
        return super().get_queryset(request).defer("payload", "env").select_related("repository__owner")

    @admin.action(description="Cancel", permissions=["operate"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        def verb(run: Run, version: int | None) -> str:
            return _cancelled(transitions.cancel_run(run_id=run.pk, actor=request.user, version=version))

        return self.each(request, queryset, verb)

    @admin.action(description="Force cancel", permissions=["operate"])
    def force_cancel(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        def verb(run: Run, version: int | None) -> str:
            count = transitions.cancel_run(run_id=run.pk, actor=request.user, force=True, version=version)
            return f"{_cancelled(count)} by force"

        return self.each(request, queryset, verb)

    @admin.action(description="Re-run all jobs", permissions=["operate"])
    def rerun(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._again(request, queryset, "all")

    @admin.action(description="Re-run failed jobs", permissions=["operate"])
    def rerun_failed(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._again(request, queryset, "failed")

    @admin.action(description="Approve", permissions=["operate"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        def verb(run: Run, version: int | None) -> str:
            transitions.approve_run(run_id=run.pk, actor=request.user, version=version)
            return "approved"

        return self.each(request, queryset, verb)

    def _again(self, request: HttpRequest, queryset: QuerySet[Run], mode: str) -> HttpResponse | None:
        def verb(run: Run, version: int | None) -> str:
            again: Any = transitions.rerun(run_id=run.pk, actor=request.user, mode=mode, version=version)
            return f"attempt {again.attempt} started"

        return self.each(request, queryset, verb)


def _cancelled(count: int) -> str:
    return f"cancelled ({count} job{'' if count == 1 else 's'})"

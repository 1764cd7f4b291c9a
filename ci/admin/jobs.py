"""Which jobs and steps are there, and how does the operator cancel, requeue or re-run one?"""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ci.admin.inlines import EventsOfJob, StepInline
from ci.admin.readonly import ReadOnly, Records, link
from ci.admin.versions import VersionedActions
from ci.lifecycle import transitions
from ci.lifecycle.transitions.guard import check_version
from ci.models import Job, Step


@admin.register(Job)
class JobAdmin(ReadOnly, VersionedActions):
    list_display = [
        "name",
        "state_now",
        "run_link",
        "repository",
        "attempt",
        "runner_name",
        "labels",
        "created_at",
        "log_link",
    ]
    list_filter = ["state", "conclusion", "cancel_reason", "hold", "created_at"]
    list_select_related = ["run__repository__owner", "log"]
    search_fields = [
        *("name", "key", "runner_name", "run__workflow_name", "run__title", "run__sha"),
        *("run__repository__name", "run__repository__owner__username"),
    ]
    date_hierarchy = "created_at"
    inlines = [StepInline, EventsOfJob]
    actions = ["cancel", "force_cancel", "requeue", "rerun"]
    fields = readonly_fields = (
        *("run", "attempt", "call", "calls", "key", "name", "environment", "deploys", "log_link"),
        *("state_now", "hold", "conclusion", "end_note"),
        *("cancel_reason", "cancel_requested_at", "cancelled_by"),
        *("runner", "runner_name", "labels", "assignment", "single_use", "priority"),
        *("needs", "level", "matrix", "matrix_index", "matrix_total", "fail_fast", "max_parallel"),
        *("continue_on_error", "timeout_minutes", "concurrency_group", "carried_from"),
        *("call_inputs", "outputs", "definition"),
        *("created_at", "queued_at", "assigned_at", "started_at", "ended_at", "deadline_at", "version"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).select_related("run__repository__owner", "log")

    @admin.display(description="run")
    def run_link(self, job: Job) -> SafeString:
        return link(job.run)

    @admin.display(description="belongs to the call")
    def call(self, job: Job) -> SafeString:
        return link(job.parent)

    @admin.display(description="calls the workflow")
    def calls(self, job: Job) -> str:
        return str(job.definition.get("uses") or "–")

    @admin.display(description="repository")
    def repository(self, job: Job) -> str:
        return str(job.run.repository)

    @admin.display(description="runs-on")
    def labels(self, job: Job) -> str:
        return ", ".join(job.runs_on)

    @admin.display(description="log")
    def log_link(self, job: Job) -> SafeString:
        if not hasattr(job, "log"):
            return SafeString("–")
        return format_html('<a href="{}">{} lines</a>', raw_log_url(job), job.log.lines)

    @admin.action(description="Cancel", permissions=["operate"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        def verb(job: Job, version: int | None) -> str:
            transitions.cancel_job(job_id=job.pk, actor=request.user, version=version)
            return "cancelled"

        return self.each(request, queryset, verb)

    @admin.action(description="Force cancel", permissions=["operate"])
    def force_cancel(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        def verb(job: Job, version: int | None) -> str:
            transitions.cancel_job(job_id=job.pk, actor=request.user, force=True, version=version)
            return "cancelled by force"

        return self.each(request, queryset, verb)

    @admin.action(description="Requeue (take it from its runner)", permissions=["operate"])
    def requeue(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        def verb(job: Job, version: int | None) -> str:
            transitions.requeue_job(job_id=job.pk, actor=request.user, version=version)
            return "queued again"

        return self.each(request, queryset, verb)

    @admin.action(description="Re-run", permissions=["operate"])
    def rerun(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        def verb(job: Job, version: int | None) -> str:
            # The transition guards the run; what was shown here is the job.
            check_version(job, version)
            again = transitions.rerun(run_id=job.run_id, actor=request.user, mode="job", job_id=job.pk)
            return f"runs again in attempt {again.attempt}"

        return self.each(request, queryset, verb)


@admin.register(Step)
class StepAdmin(Records):
    date_hierarchy = "started_at"
    list_display = ["__str__", "state_now", "job_link", "started_at", "ended_at"]
    list_filter = ["state", "conclusion"]
    list_select_related = ["job__run"]
    search_fields = ["name", "job__name", "job__run__workflow_name"]
    fields = readonly_fields = (
        *("job", "number", "name", "state_now", "conclusion", "started_at", "ended_at"),
        *("first_line", "line_count", "annotations", "summary"),
    )

    @admin.display(description="job")
    def job_link(self, step: Step) -> SafeString:
        return link(step.job)


def raw_log_url(job: Job) -> str:
    repository = job.run.repository
    return reverse("job_log_raw", args=[repository.owner.username, repository.name, job.run_id, job.pk])

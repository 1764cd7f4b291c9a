"""Which rows belong to a run, job or runner? Shown below it, at most so many, with a link to them all."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from ci.admin.readonly import ReadOnly, link, state_chip
from ci.models import Event, Job, LaunchAttempt, RunAttempt, Runner, Step

# GitHub's limit of a matrix is 256 legs: all of one attempt are on the page.
MAX_INLINE = 300


class FirstRows(BaseInlineFormSet):
    """A formset of no more than MAX_INLINE rows: the first in the inline's order."""

    def get_queryset(self) -> Any:
        if not hasattr(self, "_first_rows"):
            self._first_rows = super().get_queryset()[:MAX_INLINE]
        return self._first_rows


class _Rows(ReadOnly, admin.TabularInline):
    formset = FirstRows
    extra = 0
    # Not max_num, which the admin sets to 0 where nothing may be added.
    shown_at_most = MAX_INLINE
    can_delete = False
    template = "admin/ci/rows.html"


class JobInline(_Rows):
    model = Job
    fk_name = "run"
    fields = readonly_fields = ("job_link", "attempt", "state_now", "runner_name", "started_at", "ended_at", "end_note")
    ordering = ["-attempt", "level", "key", "matrix_index"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer("definition", "matrix", "outputs")

    @admin.display(description="job")
    def job_link(self, job: Job) -> SafeString:
        return link(job)

    @admin.display(description="state")
    def state_now(self, job: Job) -> SafeString:
        return state_chip(job.outcome)


class JobsOfRunner(JobInline):
    fk_name = "runner"
    verbose_name_plural = "its jobs, newest first"
    ordering = ["-id"]


class AttemptInline(_Rows):
    model = RunAttempt
    verbose_name_plural = "earlier attempts"
    fields = readonly_fields = ("number", "state_now", "triggered_by_name", "started_at", "ended_at")

    @admin.display(description="conclusion")
    def state_now(self, attempt: RunAttempt) -> SafeString:
        return state_chip(attempt.conclusion)


class StepInline(_Rows):
    model = Step
    fields = readonly_fields = ("number", "name", "state_now", "started_at", "ended_at", "first_line", "line_count")
    ordering = ["number"]

    @admin.display(description="state")
    def state_now(self, step: Step) -> SafeString:
        return state_chip(step.outcome)


class EventInline(_Rows):
    model = Event
    verbose_name_plural = "events, newest first"
    fields = readonly_fields = ("created_at", "kind", "job_link", "from_state", "to_state", "by", "detail")
    ordering = ["-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        return super().get_queryset(request).select_related("job").defer("job__definition", "job__outputs")

    @admin.display(description="job")
    def job_link(self, event: Event) -> SafeString:
        return link(event.job)

    @admin.display(description="by")
    def by(self, event: Event) -> str:
        return event.actor_name or "the server"


class EventsOfRun(EventInline):
    fk_name = "run"


class EventsOfJob(EventInline):
    fk_name = "job"


class EventsOfRunner(EventInline):
    fk_name = "runner"


class EventsOfRunnerSet(EventInline):
    fk_name = "runner_set"


class RunnersOfSet(_Rows):
    model = Runner
    fk_name = "runner_set"
    verbose_name_plural = "its runners, newest first"
    fields = readonly_fields = (
        *("runner_link", "phase_now", "ready", "used_job_name", "spec_revision", "attempts", "failures", "reason"),
        *("created_at", "registered_at", "ended_at", "stopped_at"),
    )
    ordering = ["-id"]

    @admin.display(description="runner")
    def runner_link(self, runner: Runner) -> SafeString:
        return link(runner)

    @admin.display(description="phase")
    def phase_now(self, runner: Runner) -> SafeString:
        return state_chip(runner.phase)


class LaunchAttemptsOfRunner(_Rows):
    model = LaunchAttempt
    fk_name = "runner"
    verbose_name_plural = "processes started for it"
    fields = readonly_fields = ("number", "started_at", "handle", "ended_at", "exit_code", "reason", "failed")
    ordering = ["number"]

"""What else does the server remember? Events, workflows, schedules, groups, settings and logs, to be looked at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ci.admin.jobs import raw_log_url
from ci.admin.readonly import Records, link
from ci.admin.runners import scope
from ci.lifecycle.fired_events import never_fired
from ci.models import ConcurrencyGroup, Environment, Event, LabelSet, Log, Schedule, Secret, Variable, Workflow

_NEWEST = 5000
_OF_ENVIRONMENT = ("environment", admin.EmptyFieldListFilter)


class RecentKind(admin.SimpleListFilter):
    """The kinds of the newest events: to ask the whole table would take longer than the page."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        newest = Event.objects.order_by("-id").values("kind")[:_NEWEST]
        return sorted({(row["kind"], row["kind"].replace("_", " ")) for row in newest})

    def queryset(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(Event)
class EventAdmin(Records):
    list_display = ["created_at", "kind", "run_link", "job_link", "runner", "from_state", "to_state", "by", "detail"]
    list_display_links = ["created_at"]
    list_filter = [RecentKind, "created_at"]
    list_select_related = ["run", "job", "runner"]
    search_fields = ["kind", "detail", "actor_name", "job__name", "run__workflow_name", "runner__name"]
    date_hierarchy = "created_at"
    fields = readonly_fields = (
        *("created_at", "kind", "run", "job", "runner", "runner_set", "from_state", "to_state", "by", "detail"),
    )
    ordering = ["-id"]

    @admin.display(description="run")
    def run_link(self, event: Event) -> SafeString:
        return link(event.run)

    @admin.display(description="job")
    def job_link(self, event: Event) -> SafeString:
        return link(event.job)

    @admin.display(description="by")
    def by(self, event: Event) -> str:
        return event.actor_name or "the server"


@admin.register(Workflow)
class WorkflowAdmin(Records):
    list_display = ["name", "path", "repository", "enabled", "on_default_branch", "event_names", "run_count"]
    list_filter = ["enabled", "on_default_branch"]
    list_select_related = ["repository__owner"]
    search_fields = ["name", "path", "repository__name", "repository__owner__username"]
    fields = readonly_fields = (
        *("repository", "path", "name", "enabled", "on_default_branch"),
        *("event_names", "unfired", "problems", "run_count"),
    )

    @admin.display(description="events")
    def event_names(self, workflow: Workflow) -> str:
        return ", ".join(str(event) for event in workflow.events)

    @admin.display(description="events never fired here")
    def unfired(self, workflow: Workflow) -> str:
        return ", ".join(never_fired(workflow.events)) or "–"


@admin.register(Schedule)
class ScheduleAdmin(Records):
    list_display = ["cron", "timezone", "workflow", "repository", "next_at", "last_at"]
    list_select_related = ["workflow__repository__owner"]
    list_filter = ["next_at"]
    search_fields = ["cron", "workflow__name", "workflow__repository__name"]
    date_hierarchy = "next_at"
    fields = readonly_fields = ("workflow", "cron", "timezone", "next_at", "last_at")

    @admin.display(description="repository")
    def repository(self, schedule: Schedule) -> str:
        return str(schedule.workflow.repository)


@admin.register(Environment)
class EnvironmentAdmin(Records):
    """Created and deleted on the pages of their repository."""

    list_display = ["name", "repository", "created_at"]
    list_select_related = ["repository__owner"]
    search_fields = ["name", "repository__name", "repository__owner__username"]
    fields = readonly_fields = ("name", "repository", "created_at")


@admin.register(ConcurrencyGroup)
class ConcurrencyGroupAdmin(Records):
    list_display = ["name", "repository", "created_at"]
    list_select_related = ["repository__owner"]
    search_fields = ["name", "repository__name"]
    fields = readonly_fields = ("name", "repository", "created_at")


@admin.register(LabelSet)
class LabelSetAdmin(Records):
    list_display = ["__str__"]
    search_fields = ["labels"]
    fields = readonly_fields = ("labels",)


@admin.register(Secret)
class SecretAdmin(Records):
    """Names only. No page, not even this one, has the value of a secret."""

    list_display = ["name", scope, "created_at", "updated_at"]
    list_filter = [_OF_ENVIRONMENT]
    list_select_related = ["owner", "repository__owner", "environment"]
    search_fields = ["name", "owner__username", "repository__name", "environment__name"]
    fields = readonly_fields = ("name", "owner", "repository", "environment", "created_at", "updated_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Secret]:
        return super().get_queryset(request).defer("encrypted")


@admin.register(Variable)
class VariableAdmin(Records):
    list_display = ["name", scope, "created_at", "updated_at"]
    list_filter = [_OF_ENVIRONMENT]
    list_select_related = ["owner", "repository__owner", "environment"]
    search_fields = ["name", "owner__username", "repository__name", "environment__name"]
    fields = readonly_fields = ("name", "value", "owner", "repository", "environment", "created_at", "updated_at")


@admin.register(Log)
class LogAdmin(Records):
    list_display = ["job", "lines", "size", "sealed_at", "text"]
    list_filter = ["sealed_at"]
    list_select_related = ["job__run__repository__owner"]
    search_fields = ["job__name", "job__run__workflow_name"]
    fields = readonly_fields = ("job", "lines", "size", "sealed_at", "blob", "text")

    @admin.display(description="text")
    def text(self, log: Log) -> SafeString:
        return format_html('<a href="{}">raw</a>', raw_log_url(log.job))

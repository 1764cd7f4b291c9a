"""Which runners are there, and how does the operator pause, resume or remove one?"""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from ci.admin.inlines import EventsOfRunner, JobsOfRunner, LaunchAttemptsOfRunner
from ci.admin.readonly import ReadOnly, state_chip
from ci.admin.versions import VersionedActions
from ci.lifecycle import registration
from ci.models import RegistrationToken, Runner
from ci.models.scope import Scoped


@admin.display(description="scope")
def scope(row: Scoped) -> str:
    return str(row.scope)


@admin.register(Runner)
class RunnerAdmin(ReadOnly, VersionedActions):
    list_display = ["name", "phase_now", "ready", "paused", scope, "label_list", "runner_set", "last_seen_at"]
    list_filter = [
        *("phase", "ready", "paused", "ephemeral", ("runner_set", admin.EmptyFieldListFilter), "launcher", "os"),
        "last_seen_at",
    ]
    list_select_related = ["owner", "repository__owner", "runner_set"]
    search_fields = ["name", "labels", "owner__username", "repository__name", "runner_set__name", "used_job_name"]
    date_hierarchy = "created_at"
    inlines = [JobsOfRunner, LaunchAttemptsOfRunner, EventsOfRunner]
    actions = ["pause", "resume", "remove"]
    fields = readonly_fields = (
        *("name", "owner", "repository", "label_list", "runner_set", "ephemeral", "paused"),
        *("phase", "ready", "reason", "used_job_id", "used_job_name", "agent_version", "os", "arch"),
        *("spec_revision", "attempts", "failures", "next_attempt_at", "launcher", "handle", "exit_code"),
        *("created_at", "launched_at", "registered_at", "idle_since", "last_seen_at", "ended_at"),
        *("deleting_at", "cleanup_at", "stopped_at", "version"),
    )

    @admin.display(description="phase", ordering="phase")
    def phase_now(self, runner: Runner) -> SafeString:
        return state_chip(runner.phase)

    @admin.display(description="labels")
    def label_list(self, runner: Runner) -> str:
        return ", ".join(runner.labels)

    @admin.action(description="Pause", permissions=["operate"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Runner]) -> HttpResponse | None:
        return self._pause(request, queryset, True)

    @admin.action(description="Resume", permissions=["operate"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Runner]) -> HttpResponse | None:
        return self._pause(request, queryset, False)

    @admin.action(description="Remove", permissions=["operate"])
    def remove(self, request: HttpRequest, queryset: QuerySet[Runner]) -> HttpResponse | None:
        def verb(runner: Runner, version: int | None) -> str:
            registration.remove_runner(runner_id=runner.pk, actor=request.user, version=version)
            return "removed"

        return self.each(request, queryset, verb)

    def _pause(self, request: HttpRequest, queryset: QuerySet[Runner], paused: bool) -> HttpResponse | None:
        def verb(runner: Runner, version: int | None) -> str:
            registration.pause_runner(runner_id=runner.pk, paused=paused, actor=request.user, version=version)
            return "paused" if paused else "resumed"

        return self.each(request, queryset, verb)


@admin.register(RegistrationToken)
class RegistrationTokenAdmin(ReadOnly, VersionedActions):
    """Made on the pages of their scope, where the token is shown once; revoked here too."""

    list_display = ["hint", scope, "usable", "created_by", "created_at", "expires_at", "revoked_at", "last_used_at"]
    list_filter = ["revoked_at", "expires_at", "created_at"]
    list_select_related = ["owner", "repository__owner", "created_by"]
    search_fields = ["hint", "owner__username", "repository__name", "created_by__username"]
    date_hierarchy = "created_at"
    actions = ["revoke"]
    fields = readonly_fields = (
        *("hint", "owner", "repository", "created_by", "created_at", "expires_at", "revoked_at", "last_used_at"),
    )

    @admin.display(description="usable", boolean=True)
    def usable(self, token: RegistrationToken) -> bool:
        return token.is_usable

    def get_queryset(self, request: HttpRequest) -> QuerySet[RegistrationToken]:
        return super().get_queryset(request).select_related("owner", "repository__owner")

    @admin.action(description="Revoke", permissions=["operate"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[RegistrationToken]) -> HttpResponse | None:
        def verb(token: RegistrationToken, version: int | None) -> str:
            registration.revoke_registration_token(token_id=token.pk, actor=request.user)
            return "revoked"

        return self.each(request, queryset, verb)

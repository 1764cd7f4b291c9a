"""What is a run? One workflow, for one event, in one or more attempts."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import MD5
from django.urls import reverse
from django.utils import timezone

from ci.models.choices import CancelReason, RunConclusion, RunState
from ci.models.workflow import ConcurrencyGroup, Schedule, Workflow
from forge.models import Push, Repository


class Run(models.Model):
    """`attempt` is the current attempt; what earlier ones came to stands in RunAttempt, their jobs in Job."""

    # Each of these two begins indexes of its own.
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="runs", db_index=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="runs", db_index=False)
    workflow_path = models.CharField(max_length=255)
    workflow_name = models.CharField(max_length=255)
    number = models.PositiveIntegerField(help_text="Counts the runs of this workflow.")
    attempt = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=500)

    push = models.ForeignKey(Push, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs")
    schedule = models.ForeignKey(Schedule, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs")
    scheduled_for = models.DateTimeField(null=True, blank=True)
    # Of a workflow_run event: the run that caused this one, and what it had just done in which attempt.
    source_run = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="caused")
    source_attempt = models.PositiveIntegerField(null=True, blank=True)
    source_action = models.CharField(max_length=11, blank=True)
    event = models.CharField(max_length=50)
    payload = models.JSONField(default=dict)
    inputs = models.JSONField(default=dict)
    ref = models.CharField(max_length=1024)
    sha = models.CharField(max_length=64)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs"
    )
    actor_name = models.CharField(max_length=150, blank=True)
    triggered_by_name = models.CharField(max_length=150, blank=True, help_text="Who started the current attempt.")
    # Secrets go only to runs that somebody with write access caused.
    trusted = models.BooleanField(default=False)

    env = models.JSONField(default=dict)
    defaults = models.JSONField(default=dict)
    permissions = models.JSONField(null=True, blank=True)
    problems = models.JSONField(default=list, help_text="Of a startup failure: path, line, column, message of each.")

    concurrency_group = models.ForeignKey(
        ConcurrencyGroup, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs"
    )
    cancel_in_progress = models.BooleanField(default=False)
    queue_all = models.BooleanField(default=False, help_text="Whether all of its group may wait, not only the newest.")
    entered_group_at = models.DateTimeField(null=True, blank=True)
    approval_pending = models.BooleanField(default=False, help_text="Waits for somebody with write access.")
    # Of the current attempt: it was cancelled as a whole. What its jobs' `if` wants all the same still runs.
    cancel_reason = models.CharField(max_length=13, choices=CancelReason.choices, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    state = models.CharField(max_length=7, choices=RunState.choices, default=RunState.QUEUED)
    conclusion = models.CharField(max_length=15, choices=RunConclusion.choices, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(
        null=True, blank=True, help_text="When the watch must end it, if it has not ended by then."
    )
    version = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["push", "event", "workflow_path"], name="run_once_a_push_event_and_workflow"
            ),
            models.UniqueConstraint(
                fields=["source_run", "source_attempt", "source_action", "workflow_path"],
                name="run_once_a_source_and_workflow",
            ),
            models.UniqueConstraint(fields=["schedule", "scheduled_for"], name="run_once_a_due_time"),
            models.UniqueConstraint(fields=["workflow", "number"], name="run_number_once_a_workflow"),
            models.CheckConstraint(
                condition=Q(state="ended", conclusion__isnull=False, ended_at__isnull=False)
                | (~Q(state="ended") & Q(conclusion=None, ended_at=None)),
                name="run_ended_has_a_conclusion",
            ),
        ]
        indexes = [
            models.Index(fields=["repository", "-id"], name="run_of_repository"),
            models.Index(fields=["repository", "sha"], name="run_of_commit"),
            # What the list of runs is filtered by.
            # Of a ref its digest: a long one is more than an index can hold.
            models.Index(F("repository"), MD5("ref"), F("id").desc(), name="run_of_ref"),
            models.Index(fields=["repository", "event", "-id"], name="run_of_event"),
            models.Index(fields=["repository", "conclusion", "-id"], name="run_of_outcome"),
            models.Index(fields=["workflow", "-id"], name="run_of_workflow"),
            models.Index(
                fields=["concurrency_group", "id"], condition=~Q(state="ended"), name="run_in_concurrency_group"
            ),
            models.Index(fields=["deadline_at"], condition=~Q(state="ended"), name="run_deadline"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow_name} #{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("run", args=[self.repository.owner.username, self.repository.name, self.pk])

    @property
    def is_ended(self) -> bool:
        return self.state == RunState.ENDED

    @property
    def outcome(self) -> str:
        """The conclusion once there is one, `cancelling` on the way to it, else the state: what a chip shows."""
        return self.conclusion or ("cancelling" if self.cancel_reason else self.state)

    @property
    def ref_name(self) -> str:
        return self.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")

    @property
    def duration(self) -> timedelta | None:
        return elapsed(self.started_at, self.ended_at)


class RunAttempt(models.Model):
    """An attempt that was followed by another: what it came to, and who had started it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="earlier_attempts")
    number = models.PositiveIntegerField()
    conclusion = models.CharField(max_length=15, choices=RunConclusion.choices)
    triggered_by_name = models.CharField(max_length=150, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="attempt_once_a_run"),
            models.CheckConstraint(
                condition=Q(started_at=None) | Q(ended_at__gte=F("started_at")), name="attempt_ends_after_its_start"
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.run}"

    @property
    def duration(self) -> timedelta | None:
        return elapsed(self.started_at, self.ended_at)


def elapsed(start: datetime | None, end: datetime | None) -> timedelta | None:
    """From start to end, or to now while there is no end; None before the start."""
    if start is None:
        return None
    return max(timedelta(0), (end or timezone.now()) - start)

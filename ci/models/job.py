"""What is a job, and what does the database itself refuse to believe of one?"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone

from ci.models.choices import CancelReason, Conclusion, Hold, JobState, StepState
from ci.models.run import Run, elapsed
from ci.models.runner import LabelSet, Runner
from ci.models.workflow import ConcurrencyGroup, Environment


class Job(models.Model):
    """One job of one attempt; of a matrix, one leg. Until its needs have ended a matrix is one unexpanded row."""

    # Its first constraint begins with the run.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="jobs", db_index=False)
    attempt = models.PositiveIntegerField(default=1)
    parent = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="children",
        db_index=False,
        help_text="The call of a reusable workflow that it belongs to.",
    )
    key = models.CharField(max_length=100, help_text="Its id in the workflow file.")
    name = models.CharField(max_length=500)
    needs = ArrayField(models.CharField(max_length=100), default=list)
    level = models.PositiveIntegerField(default=0, help_text="The longest way to it through needs.")
    definition = models.JSONField(default=dict)
    call_inputs = models.JSONField(default=dict, help_text="Of a call: what it gives to the called workflow.")
    expanded = models.BooleanField(default=False)
    matrix = models.JSONField(default=dict)
    matrix_index = models.PositiveIntegerField(default=0)
    matrix_total = models.PositiveIntegerField(default=1)
    fail_fast = models.BooleanField(default=True)
    max_parallel = models.PositiveIntegerField(null=True, blank=True)
    continue_on_error = models.BooleanField(default=False)
    timeout_minutes = models.FloatField(default=360)
    cancel_timeout_minutes = models.FloatField(
        null=True, blank=True, help_text="What a cancel leaves it for its post steps; empty: the server's own setting."
    )
    runs_on = ArrayField(models.CharField(max_length=100), default=list)
    # Nothing asks for the jobs of a label set but for the queued ones, in their order.
    label_set = models.ForeignKey(
        LabelSet, null=True, blank=True, on_delete=models.PROTECT, related_name="jobs", db_index=False
    )
    # Its run's repository, and that one's owner, once more: indexes of the queue begin with them. Neither ever changes;
    # should repositories move to other owners one day, those of their queued jobs must change in the same transaction.
    queue_repository = models.BigIntegerField(null=True, blank=True, editable=False)
    queue_owner = models.BigIntegerField(null=True, blank=True, editable=False)
    concurrency_group = models.ForeignKey(
        ConcurrencyGroup, null=True, blank=True, on_delete=models.SET_NULL, related_name="jobs", db_index=False
    )
    cancel_in_progress = models.BooleanField(default=False)
    queue_all = models.BooleanField(default=False, help_text="Whether all of its group may wait, not only the newest.")
    # A call may be in two groups: its own, and then that of the workflow that it calls.
    called_group = models.ForeignKey(
        ConcurrencyGroup, null=True, blank=True, on_delete=models.SET_NULL, related_name="calls", db_index=False
    )
    called_cancel_in_progress = models.BooleanField(default=False)
    called_queue_all = models.BooleanField(default=False)
    entered_group_at = models.DateTimeField(
        null=True, blank=True, help_text="When it began to wait for the group that it waits for, or waited for last."
    )
    environment = models.ForeignKey(
        Environment, null=True, blank=True, on_delete=models.SET_NULL, related_name="jobs", db_index=False
    )
    # Kept when its environment is deleted: whom an id token vouches for must not change while the job runs.
    environment_name = models.CharField(max_length=255, blank=True, editable=False)
    deploys = models.BooleanField(
        default=False, help_text="Whether it is a deployment to its environment, and not only reads its secrets."
    )
    environment_url = models.CharField(max_length=1000, blank=True, help_text="Where what it deployed can be seen.")
    # A job that a re-run did not run again stands in the new attempt as a copy of this earlier one.
    carried_from = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="copies", db_index=False
    )

    state = models.CharField(max_length=8, choices=JobState.choices, default=JobState.BLOCKED)
    hold = models.CharField(max_length=12, choices=Hold.choices, blank=True)
    conclusion = models.CharField(max_length=9, choices=Conclusion.choices, null=True, blank=True)
    cancel_reason = models.CharField(max_length=13, choices=CancelReason.choices, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    end_note = models.CharField(max_length=1000, blank=True)
    outputs = models.JSONField(default=dict)

    priority = models.IntegerField(default=0)
    assignment = models.PositiveIntegerField(default=0, help_text="Counts how often it was given to a runner.")
    runner = models.ForeignKey(Runner, null=True, blank=True, on_delete=models.SET_NULL, related_name="jobs")
    runner_name = models.CharField(max_length=100, blank=True)
    single_use = models.BooleanField(default=False, help_text="Whether its runner may take no other job, ever.")
    token_hash = models.CharField(max_length=64, null=True, blank=True, editable=False)
    poll_id = models.CharField(max_length=64, blank=True, editable=False)

    created_at = models.DateTimeField(default=timezone.now, editable=False)
    queued_at = models.DateTimeField(null=True, blank=True)
    assigned_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(
        null=True, blank=True, help_text="When the watch must act on it, if nobody else does."
    )
    version = models.PositiveIntegerField(default=0)

    class Meta:
        # By the column: the relation would bring the run in, and lock it with the job.
        ordering = ["run_id", "level", "key", "matrix_index"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "attempt", "parent", "key", "matrix_index"],
                name="job_once_an_attempt_and_call",
                nulls_distinct=False,
            ),
            models.UniqueConstraint(
                fields=["runner"], condition=Q(single_use=True), name="job_one_ever_for_a_single_use_runner"
            ),
            models.UniqueConstraint(
                fields=["runner"], condition=Q(state__in=["assigned", "running"]), name="job_one_at_a_time_for_a_runner"
            ),
            models.CheckConstraint(
                condition=Q(state="ended", conclusion__isnull=False, ended_at__isnull=False)
                | (~Q(state="ended") & Q(conclusion=None, ended_at=None)),
                name="job_ended_has_a_conclusion",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["assigned", "running"])
                | Q(runner__isnull=False, token_hash__isnull=False, assigned_at__isnull=False),
                name="job_active_has_a_runner_and_token",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["blocked", "queued"]) | Q(runner=None, token_hash=None, assigned_at=None),
                name="job_waiting_has_neither",
            ),
            models.CheckConstraint(
                condition=~Q(state="queued")
                | Q(
                    label_set__isnull=False,
                    queue_repository__isnull=False,
                    queue_owner__isnull=False,
                    queued_at__isnull=False,
                    expanded=True,
                ),
                name="job_queued_can_be_matched",
            ),
            models.CheckConstraint(
                condition=Q(poll_id="") | Q(state="assigned"), name="job_poll_forgotten_once_acknowledged"
            ),
            models.CheckConstraint(
                condition=(~Q(state="blocked") & Q(hold="")) | (Q(state="blocked") & ~Q(hold="")),
                name="job_blocked_says_why",
            ),
        ]
        indexes = [
            models.Index(
                F("label_set"),
                F("priority").desc(),
                F("queued_at"),
                F("id"),
                condition=Q(state="queued"),
                name="job_queue",
            ),
            models.Index(
                F("label_set"),
                F("queue_repository"),
                F("priority").desc(),
                F("queued_at"),
                F("id"),
                condition=Q(state="queued"),
                name="job_queue_of_repository",
            ),
            models.Index(
                F("label_set"),
                F("queue_owner"),
                F("priority").desc(),
                F("queued_at"),
                F("id"),
                condition=Q(state="queued"),
                name="job_queue_of_owner",
            ),
            models.Index(
                fields=["deadline_at"],
                condition=~Q(state="ended") & Q(deadline_at__isnull=False),
                name="job_deadline",
            ),
            models.Index(
                fields=["concurrency_group", "id"],
                condition=~Q(state="ended") & Q(concurrency_group__isnull=False),
                name="job_in_group",
            ),
            models.Index(fields=["environment", "-id"], condition=Q(deploys=True), name="job_deployment"),
            models.Index(
                fields=["environment", "-ended_at", "-id"],
                condition=Q(deploys=True, conclusion="success"),
                name="job_deployed",
            ),
            models.Index(
                fields=["called_group", "id"],
                condition=~Q(state="ended") & Q(called_group__isnull=False),
                name="job_in_called_group",
            ),
            # A job's row is written anew each time it moves, into all indexes but those that leave it out: most jobs
            # have none of these for most of their life.
            *(
                models.Index(fields=[name], condition=Q(**{f"{name}__isnull": False}), name=f"job_by_{name}")
                for name in (
                    "token_hash",
                    "parent",
                    "carried_from",
                    "cancelled_by",
                    "environment",
                    "concurrency_group",
                    "called_group",
                )
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        repository = self.run.repository
        return reverse("job", args=[repository.owner.username, repository.name, self.run_id, self.pk])

    @property
    def is_ended(self) -> bool:
        return self.state == JobState.ENDED

    @property
    def is_call(self) -> bool:
        """Whether it runs no steps of its own but the jobs of another workflow."""
        return "uses" in self.definition

    @property
    def outcome(self) -> str:
        """The conclusion once there is one, `cancelling` on the way to it, else the state: what a chip shows."""
        if self.conclusion:
            return self.conclusion
        if self.cancel_reason:
            return "cancelling"
        return JobState.RUNNING if self.hold == Hold.CALLED else self.state

    @property
    def grace(self) -> timedelta:
        """What it has from the moment it is asked to stop until it is ended by force."""
        if self.cancel_timeout_minutes is not None:
            return timedelta(minutes=self.cancel_timeout_minutes)
        return timedelta(seconds=settings.CANCEL_GRACE_SECONDS)

    @property
    def duration(self) -> timedelta | None:
        return elapsed(self.started_at, self.ended_at)


class Heartbeat(models.Model):
    """When a running job was last heard of: apart from Job, because it is written most."""

    job = models.OneToOneField(Job, primary_key=True, on_delete=models.CASCADE, related_name="heartbeat")
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.job} at {self.at:%H:%M:%S}"


class Step(models.Model):
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=500)
    state = models.CharField(max_length=7, choices=StepState.choices, default=StepState.PENDING)
    conclusion = models.CharField(max_length=9, choices=Conclusion.choices, null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    first_line = models.PositiveIntegerField(default=0)
    line_count = models.PositiveIntegerField(default=0)
    annotations = models.JSONField(default=list)
    summary = models.TextField(blank=True)

    class Meta:
        ordering = ["job_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="step_once_a_job"),
            models.CheckConstraint(
                condition=Q(state="ended", conclusion__isnull=False) | (~Q(state="ended") & Q(conclusion=None)),
                name="step_ended_has_a_conclusion",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number}. {self.name}"

    @property
    def outcome(self) -> str:
        return self.conclusion or self.state

    @property
    def duration(self) -> timedelta | None:
        return elapsed(self.started_at, self.ended_at)

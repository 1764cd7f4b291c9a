"""Who runs jobs? Runners, the tokens they register with, and the processes that were started for them."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from ci.models.choices import TERMINAL_PHASES, RunnerPhase
from ci.models.runner_set import RunnerSet
from ci.models.scope import Scoped


class LabelSet(models.Model):
    """The labels that some job's `runs-on` names, sorted and in lower case; a row for each distinct set."""

    labels = ArrayField(models.CharField(max_length=100), unique=True)

    def __str__(self) -> str:
        return ", ".join(self.labels)


class RegistrationToken(Scoped):
    """Lets runners register in its scope, `frg_…`; only its SHA-256 is kept."""

    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=12, editable=False, help_text="The first characters, to tell tokens apart.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta(Scoped.Meta):
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.hint}… for {self.scope}"

    @property
    def is_usable(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())


class Runner(Scoped):
    """`phase` says whether it has a job, `ready` whether its process is up.

    Of a single-use runner the phase also says how it ended.
    """

    name = models.CharField(max_length=100)
    labels = ArrayField(models.CharField(max_length=100))
    # Not without its runners, unless all of them go with their owner or repository.
    runner_set = models.ForeignKey(RunnerSet, null=True, blank=True, on_delete=models.RESTRICT, related_name="runners")
    ephemeral = models.BooleanField(default=False, help_text="Takes one job, ever.")
    paused = models.BooleanField(default=False)
    agent_version = models.CharField(max_length=50, blank=True)
    os = models.CharField(max_length=50, blank=True)
    arch = models.CharField(max_length=50, blank=True)
    token_hash = models.CharField(max_length=64, unique=True, null=True, editable=False)
    uuid = models.UUIDField(
        unique=True, null=True, blank=True, editable=False, help_text="Of a runner of Forgejo or Gitea: its name to us."
    )
    phase = models.CharField(max_length=9, choices=RunnerPhase.choices, default=RunnerPhase.PENDING)
    ready = models.BooleanField(default=True)
    reason = models.CharField(max_length=500, blank=True)
    # What a single-use runner was used for: written once, readable after the job is gone.
    used_job_id = models.BigIntegerField(null=True, blank=True)
    used_job_name = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=0)

    # Of a runner set's runner: the process that is started for it, one attempt after the other.
    spec_revision = models.PositiveIntegerField(null=True, blank=True, help_text="Of its set, when it was launched.")
    attempts = models.PositiveIntegerField(default=0, help_text="How often its process was started.")
    failures = models.PositiveIntegerField(default=0, help_text="How many of these attempts failed.")
    next_attempt_at = models.DateTimeField(
        null=True, blank=True, help_text="When its process may be started; empty: there is an attempt, or none to come."
    )
    # The set's may have changed since: a process is stopped by the launcher that started it.
    launcher = models.CharField(max_length=10, choices=RunnerSet.Launcher.choices, blank=True)
    handle = models.CharField(max_length=500, blank=True, help_text="By which its launcher finds the process again.")
    launched_at = models.DateTimeField(null=True, blank=True, help_text="When its launcher had started the process.")
    registered_at = models.DateTimeField(null=True, blank=True, help_text="When the process first asked for a job.")
    idle_since = models.DateTimeField(null=True, blank=True)
    deleting_at = models.DateTimeField(null=True, blank=True, help_text="Since when its process shall go.")
    cleanup_at = models.DateTimeField(null=True, blank=True, help_text="When its process is next told to go, by force.")
    stopped_at = models.DateTimeField(
        null=True, blank=True, help_text="When its process was known to be gone: until then it takes up capacity."
    )
    exit_code = models.IntegerField(null=True, blank=True)

    class Meta(Scoped.Meta):
        ordering = ["name", "id"]
        constraints = [
            *Scoped.Meta.constraints,
            models.CheckConstraint(
                condition=~Q(phase__in=["succeeded", "failed", "outdated"]) | Q(ephemeral=True),
                name="runner_only_single_use_ones_end",
            ),
            models.CheckConstraint(
                condition=~Q(phase="running", ephemeral=True) | Q(used_job_id__isnull=False),
                name="runner_busy_single_use_one_has_a_job",
            ),
            models.CheckConstraint(
                condition=Q(runner_set=None) | Q(ephemeral=True), name="runner_of_a_set_is_single_use"
            ),
            models.CheckConstraint(
                condition=Q(next_attempt_at=None) | Q(phase="pending", ready=False, handle="", token_hash=None),
                name="runner_waiting_for_its_launch_has_no_process",
            ),
            models.CheckConstraint(
                condition=Q(stopped_at=None) | Q(phase__in=["succeeded", "failed", "outdated"]),
                name="runner_stopped_for_good_has_ended",
            ),
        ]
        indexes = [
            models.Index(fields=["runner_set", "id"], condition=Q(stopped_at=None), name="runner_live_of_a_set"),
            models.Index(fields=["ended_at"], condition=Q(phase="failed", ephemeral=True), name="runner_failed"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_online(self) -> bool:
        """Seen within two long polls."""
        return self.last_seen_at is not None and self.last_seen_at > timezone.now() - timedelta(seconds=120)

    @property
    def is_done(self) -> bool:
        return self.phase in TERMINAL_PHASES


class LaunchAttempt(models.Model):
    """One process started for a set's runner, with its own credential. `reason`: why it ended, if not by itself."""

    runner = models.ForeignKey(Runner, on_delete=models.CASCADE, related_name="launch_attempts")
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    handle = models.CharField(max_length=500, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True, help_text="When its process was known to be gone.")
    exit_code = models.IntegerField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    failed = models.BooleanField(default=False, help_text="Whether it counts as a failure of its runner and set.")

    class Meta:
        ordering = ["runner_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["runner", "number"], name="launch_attempt_once_a_number"),
            models.UniqueConstraint(fields=["runner"], condition=Q(ended_at=None), name="launch_attempt_one_at_a_time"),
        ]
        indexes = [models.Index(fields=["ended_at"], condition=Q(failed=True), name="launch_attempt_failed")]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.runner}"

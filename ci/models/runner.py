"""Who runs jobs? Runners, the sets they may belong to, and the tokens they register with."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from ci.models.choices import TERMINAL_PHASES, RunnerPhase
from ci.models.scope import Scoped


class LabelSet(models.Model):
    """The labels that some job's `runs-on` names, sorted and in lower case; a row for each distinct set."""

    labels = ArrayField(models.CharField(max_length=100), unique=True)

    def __str__(self) -> str:
        return ", ".join(self.labels)


class RunnerSet(Scoped):
    """A group of single-use runners that grows and shrinks with demand."""

    class Launcher(models.TextChoices):
        LOCAL = "local", "Local process"
        DOCKER = "docker", "Docker or Podman"
        KUBERNETES = "kubernetes", "Kubernetes"

    class Phase(models.TextChoices):
        RUNNING = "running", "Running"
        OUTDATED = "outdated", "Parked: its runners are outdated"
        DELETING = "deleting", "Deleting"

    name = models.CharField(max_length=100)
    labels = ArrayField(models.CharField(max_length=100))
    minimum = models.PositiveIntegerField(default=0, help_text="Idle runners to keep ready.")
    maximum = models.PositiveIntegerField(default=1, help_text="Runners that may exist at once.")
    launcher = models.CharField(max_length=10, choices=Launcher.choices, default=Launcher.LOCAL)
    template = models.JSONField(default=dict, blank=True)
    spec_revision = models.PositiveIntegerField(default=1)
    phase = models.CharField(max_length=8, choices=Phase.choices, default=Phase.RUNNING)
    desired = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    version = models.PositiveIntegerField(default=0)

    class Meta(Scoped.Meta):
        ordering = ["name"]
        constraints = [
            *Scoped.Meta.constraints,
            models.UniqueConstraint(
                fields=["owner", "repository", "name"], name="runner_set_once_a_scope", nulls_distinct=False
            ),
            models.CheckConstraint(condition=Q(maximum__gte=F("minimum")), name="runner_set_maximum_over_minimum"),
        ]

    def __str__(self) -> str:
        return self.name


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
    runner_set = models.ForeignKey(RunnerSet, null=True, blank=True, on_delete=models.PROTECT, related_name="runners")
    ephemeral = models.BooleanField(default=False, help_text="Takes one job, ever.")
    paused = models.BooleanField(default=False)
    agent_version = models.CharField(max_length=50, blank=True)
    os = models.CharField(max_length=50, blank=True)
    arch = models.CharField(max_length=50, blank=True)
    token_hash = models.CharField(max_length=64, unique=True, null=True, editable=False)
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

    class Meta(Scoped.Meta):
        ordering = ["name", "id"]
        constraints = [
            *Scoped.Meta.constraints,
            models.CheckConstraint(
                condition=~Q(phase__in=["succeeded", "failed", "outdated"]) | Q(ephemeral=True),
                name="runner_only_single_use_ones_end",
            ),
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

"""Which runners come and go with the work? Runner sets, and what they needed and had over time."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from ci.models.scope import Scoped
from forge.models import Repository


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
    maximum_per_repository = models.PositiveIntegerField(
        null=True, blank=True, help_text="Jobs of one repository that may run here at once; empty: no limit."
    )
    repositories = models.ManyToManyField(
        Repository, blank=True, related_name="+", help_text="Only these may use it; none: all in its scope."
    )
    launcher = models.CharField(max_length=10, choices=Launcher.choices, default=Launcher.LOCAL)
    template = models.JSONField(default=dict, blank=True)
    spec_revision = models.PositiveIntegerField(default=1)
    phase = models.CharField(max_length=8, choices=Phase.choices, default=Phase.RUNNING)
    desired = models.PositiveIntegerField(default=0)
    assigned = models.PositiveIntegerField(
        default=0, help_text="Jobs that waited for it or ran on it when it was last looked at."
    )
    wake_at = models.DateTimeField(null=True, blank=True, db_index=True, help_text="When it must be looked at again.")
    troubled_until = models.DateTimeField(
        null=True, blank=True, help_text="Its launches kept failing: until then it tries one at a time."
    )
    trouble = models.CharField(max_length=500, blank=True)
    parked_at = models.DateTimeField(null=True, blank=True)
    deleting_at = models.DateTimeField(null=True, blank=True)
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
            models.CheckConstraint(
                condition=Q(maximum_per_repository=None) | Q(maximum_per_repository__gte=1),
                name="runner_set_each_repository_may_run_something",
            ),
            models.CheckConstraint(
                condition=Q(phase="deleting", deleting_at__isnull=False) | (~Q(phase="deleting") & Q(deleting_at=None)),
                name="runner_set_deleting_has_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(phase="outdated") | Q(parked_at__isnull=False), name="runner_set_parked_has_a_time"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_troubled(self) -> bool:
        """Whether its launches kept failing, so that it starts one runner at a time."""
        until = self.troubled_until
        return self.phase == self.Phase.RUNNING and until is not None and until > timezone.now()


class RunnerSetSample(models.Model):
    """What a set needed and had at one moment: the points of its chart, kept a day."""

    runner_set = models.ForeignKey(RunnerSet, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField(default=timezone.now)
    queued = models.PositiveIntegerField()
    busy = models.PositiveIntegerField()
    idle = models.PositiveIntegerField()
    starting = models.PositiveIntegerField()
    desired = models.PositiveIntegerField()

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["runner_set", "at"], name="runner_set_sample_in_time")]

    def __str__(self) -> str:
        return f"{self.desired} desired, {self.queued} queued at {self.at:%H:%M:%S}"

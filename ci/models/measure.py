"""How long do the jobs of runner sets wait, start and run? Kept apart from the jobs, for a count must never go down."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from ci.models.runner_set import RunnerSet


class Measured(models.Model):
    """`bound`: the upper end, in seconds, of the bucket of the histogram; infinity for the last."""

    class Kind(models.TextChoices):
        QUEUE = "queue", "Queued until a runner had it"
        STARTUP = "startup", "Queued until the runner began"
        EXECUTION = "execution", "A runner had it until it ended"

    runner_set = models.ForeignKey(RunnerSet, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    kind = models.CharField(max_length=9, choices=Kind.choices)
    # Not keys: the repository may be gone or have another name, and what was counted stays.
    repository = models.CharField(max_length=300, blank=True)
    result = models.CharField(max_length=9, blank=True, help_text="Of the kind execution: the job's conclusion.")
    bound = models.FloatField()
    milliseconds = models.BigIntegerField(help_text="Of all of them. Whole, so that no rounding makes a sum smaller.")

    class Meta:
        abstract = True


class JobMeasure(Measured):
    """One measure of one job, until it is added up: written without a lock, so that no job waits for another's."""

    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.kind} {self.milliseconds} ms"


class MeasureSum(Measured):
    """All measures of a set that fell into one bucket, added up."""

    count = models.BigIntegerField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["runner_set", "kind", "repository", "result", "bound"], name="measure_sum_once_a_bucket"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.count} x {self.kind} up to {self.bound:g} s"

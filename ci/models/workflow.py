"""What is known of a repository's workflows between pushes: names, run numbers, schedules, concurrency groups."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from forge.models import Repository


class Workflow(models.Model):
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="workflows")
    path = models.CharField(max_length=255)
    name = models.CharField(max_length=255)
    enabled = models.BooleanField(default=True)
    on_default_branch = models.BooleanField(default=False, help_text="Whether the default branch has this file now.")
    events = models.JSONField(default=list, help_text="The events that its file on the default branch names.")
    problems = models.JSONField(default=list, help_text="What is wrong with the file on the default branch.")
    run_count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["name", "path"]
        constraints = [models.UniqueConstraint(fields=["repository", "path"], name="workflow_once_a_path")]

    def __str__(self) -> str:
        return f"{self.name} ({self.path})"


class Environment(models.Model):
    """What a job's `environment` names: secrets and variables of its own. Made at first use, as on GitHub."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="environments")
    name = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint("repository", Lower("name"), name="environment_once_a_repository")]

    def __str__(self) -> str:
        return self.name


class Schedule(models.Model):
    """One `cron` entry of a workflow on the default branch, and when it is due next."""

    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="schedules")
    cron = models.CharField(max_length=100)
    timezone = models.CharField(max_length=64, default="UTC")
    next_at = models.DateTimeField(db_index=True)
    last_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["next_at"]
        constraints = [
            models.UniqueConstraint(fields=["workflow", "cron", "timezone"], name="schedule_once_an_entry"),
        ]

    def __str__(self) -> str:
        return f"{self.cron} ({self.timezone})"


class ConcurrencyGroup(models.Model):
    """The row that is locked before anybody enters the group. Names compare without case: kept in lower case."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="concurrency_groups")
    name = models.CharField(max_length=400)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "name"], name="concurrency_group_once")]

    def __str__(self) -> str:
        return self.name

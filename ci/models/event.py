"""What happened to a run, job or runner, by whom, and when?"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from ci.models.job import Job
from ci.models.run import Run
from ci.models.runner import Runner
from ci.models.runner_set import RunnerSet


class Event(models.Model):
    """A row for each transition, written in its transaction. An empty actor_name means: the server itself."""

    kind = models.CharField(max_length=40)
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="events")
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.CASCADE, related_name="events")
    runner = models.ForeignKey(
        Runner, null=True, blank=True, on_delete=models.SET_NULL, related_name="events", db_index=False
    )
    runner_set = models.ForeignKey(
        RunnerSet, null=True, blank=True, on_delete=models.SET_NULL, related_name="events", db_index=False
    )
    from_state = models.CharField(max_length=20, blank=True)
    to_state = models.CharField(max_length=20, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    actor_name = models.CharField(max_length=150, blank=True)
    detail = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        # Most events are of no set and by nobody: these need no entry.
        indexes = [
            models.Index(fields=[name], condition=Q(**{f"{name}__isnull": False}), name=f"event_by_{name}")
            for name in ("runner", "runner_set", "actor")
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.from_state} -> {self.to_state}"

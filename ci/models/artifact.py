"""What did a run keep? Artifacts, each one zip (protocol v4) or a folder of files (v3)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from ci.models.blob import Blob
from ci.models.job import Job
from ci.models.run import Run
from forge.models import Repository


class Artifact(models.Model):
    """Until `finalized_at` it is being uploaded and nobody sees it; after, only its deletion or expiry changes it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts")
    attempt = models.PositiveIntegerField()
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="artifacts")
    name = models.CharField(max_length=255)
    # Of v4; the files of v3 have their own.
    blob = models.OneToOneField(Blob, null=True, blank=True, on_delete=models.PROTECT, related_name="artifact")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes, once finalized.")
    digest = models.CharField(max_length=80, blank=True, help_text="sha256:… of the zip.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    finalized_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["run", "attempt", "name"], name="artifact_once_an_attempt"),
        ]
        indexes = [
            # Not those whose bytes are gone, which stay for ever.
            models.Index(
                fields=["expires_at", "id"],
                condition=Q(blob__isnull=False, finalized_at__isnull=False),
                name="artifact_to_expire",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_expired(self) -> bool:
        """Its bytes are gone, or going; the row tells that it was there."""
        return self.expires_at <= timezone.now()


class ArtifactFile(models.Model):
    """One file of an artifact of protocol v3; `path` is relative, in the artifact."""

    artifact = models.ForeignKey(Artifact, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=1000)
    blob = models.OneToOneField(Blob, on_delete=models.PROTECT, related_name="artifact_file")

    class Meta:
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["artifact", "path"], name="artifact_file_once_a_path")]

    def __str__(self) -> str:
        return self.path


class StoragePolicy(models.Model):
    """What one repository may keep, where that is not the instance's setting; None where it is."""

    repository = models.OneToOneField(Repository, primary_key=True, on_delete=models.CASCADE, related_name="+")
    artifact_days = models.PositiveSmallIntegerField(null=True, blank=True)
    cache_bytes = models.PositiveBigIntegerField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "storage policies"
        constraints = [
            models.CheckConstraint(
                condition=Q(artifact_days=None) | Q(artifact_days__gte=1, artifact_days__lte=400),
                name="storage_policy_days_in_bounds",
            ),
        ]

    def __str__(self) -> str:
        return f"storage of {self.repository}"

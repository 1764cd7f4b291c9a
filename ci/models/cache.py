"""What may a later run find again? Cache entries of a repository, each in the scope of one ref."""

from __future__ import annotations

from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models.functions import MD5
from django.utils import timezone

from ci.models.blob import Blob
from ci.models.job import Job
from forge.models import Repository


class CacheEntry(models.Model):
    """Reserved by `job`, found by others once `finalized_at` is set; only its last use changes after."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="cache_entries")
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    ref = models.CharField(max_length=1024, help_text="Whose runs see it; of the default branch, all.")
    key = models.CharField(max_length=512)
    version = models.CharField(max_length=100, help_text="Made by the client of paths and compression.")
    blob = models.OneToOneField(Blob, on_delete=models.PROTECT, related_name="cache_entry")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes, once finalized.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    finalized_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name_plural = "cache entries"
        ordering = ["-last_used_at", "-id"]
        constraints = [
            # Of long ones the hashes: a row of an index has at most 2704 bytes.
            models.UniqueConstraint("repository", MD5("ref"), MD5("key"), "version", name="cache_entry_once_a_scope"),
        ]
        indexes = [
            models.Index(
                "repository", "version", OpClass("key", name="varchar_pattern_ops"), name="cache_entry_by_prefix"
            ),
            models.Index(fields=["repository", "last_used_at"], name="cache_entry_by_last_use"),
        ]

    def __str__(self) -> str:
        return self.key

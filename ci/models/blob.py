"""How do bytes of any size come, and where do they lie? In parts of any order, which a list joins."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone


class Blob(models.Model):
    """Committed once, which fixes its parts, their order and `size`; nothing changes it after."""

    key = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    size = models.PositiveBigIntegerField(null=True, blank=True, help_text="Bytes, once committed.")
    # Kept with each block: to add up tens of thousands of them for each new one takes minutes.
    put_size = models.PositiveBigIntegerField(default=0, help_text="Bytes of the blocks that are there.")
    put_count = models.PositiveIntegerField(default=0, help_text="How many blocks there are.")
    digest = models.CharField(max_length=80, blank=True, help_text="sha256:…, once somebody asked for it.")
    content_type = models.CharField(max_length=255, blank=True)
    content_encoding = models.CharField(max_length=20, blank=True, help_text="As it came; it is handed out with it.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    committed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(size=None, committed_at=None) | Q(size__isnull=False, committed_at__isnull=False),
                name="blob_committed_has_a_size",
            ),
        ]
        indexes = [models.Index(fields=["created_at"], condition=Q(committed_at=None), name="blob_uncommitted")]

    def __str__(self) -> str:
        return f"blob {self.key}"


class BlobPart(models.Model):
    """One block, stored under `file`; `position` is set by the commit, and parts that its list left out are gone."""

    blob = models.ForeignKey(Blob, on_delete=models.CASCADE, related_name="parts")
    block_id = models.CharField(max_length=100, help_text="The client's name for it.")
    position = models.PositiveIntegerField(null=True, blank=True)
    size = models.PositiveBigIntegerField()
    file = models.CharField(max_length=255, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["blob_id", "position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["blob", "block_id"], name="blob_part_once_a_block"),
            models.UniqueConstraint(fields=["blob", "position"], name="blob_part_once_a_position"),
        ]

    def __str__(self) -> str:
        return f"part {self.block_id} of {self.blob}"

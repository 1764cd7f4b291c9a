"""How is a job's log kept? One stream of lines, in compressed chunks, sealed and merged into one blob after the end."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ci.models.job import Job


class Log(models.Model):
    """`lines` is the offset that the next line gets; once sealed nothing is added."""

    job = models.OneToOneField(Job, primary_key=True, on_delete=models.CASCADE, related_name="log")
    lines = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes before compression.")
    base = models.PositiveIntegerField(
        default=0,
        help_text="Where the current assignment's lines begin: what is before is of runners that had it first.",
    )
    sealed_at = models.DateTimeField(null=True, blank=True)
    blob = models.CharField(max_length=255, blank=True)

    class Meta:
        # The watch asks for them each time it looks; all others, one for every job that ever was, are sealed.
        indexes = [models.Index(fields=["job"], condition=Q(sealed_at=None), name="log_unsealed")]

    def __str__(self) -> str:
        return f"log of {self.job}"


class LogChunk(models.Model):
    """Lines first_line … first_line + line_count - 1, each `<ISO time>\\t<text>\\n`, compressed with zstd."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="log_chunks")
    first_line = models.PositiveIntegerField()
    line_count = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        ordering = ["job_id", "first_line"]
        constraints = [
            models.UniqueConstraint(fields=["job", "first_line"], name="log_chunk_once_an_offset"),
            models.CheckConstraint(condition=Q(line_count__gt=0), name="log_chunk_not_empty"),
        ]

    def __str__(self) -> str:
        return f"lines {self.first_line} to {self.first_line + self.line_count - 1}"

"""How much do the artifacts of a repository take, and is there room for more? Also for what is only being uploaded."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from ci.lifecycle.errors import Conflict
from ci.models import Artifact, Blob
from forge.models import Repository


class QuotaExceeded(Conflict):
    """There is no room for these bytes."""


def artifact_bytes(repository: Repository | int) -> int:
    """Of all its runs, with what has arrived of unfinished ones."""
    rows = Artifact.objects.filter(run__repository=repository)
    # Of what has expired the size stays to be seen, and the bytes go.
    there = rows.filter(Q(blob__isnull=False) | Q(expires_at__gt=timezone.now()))
    whole = there.aggregate(sum=Sum(Coalesce("blob__put_size", "size")))["sum"]
    partial = Blob.objects.filter(committed_at=None, artifact_file__artifact__run__repository=repository)
    return int((whole or 0) + (partial.aggregate(sum=Sum("put_size"))["sum"] or 0))


def check_quota(repository: Repository | int, *, adding: int) -> None:
    """Uploads at the very same moment may pass it together. Raises QuotaExceeded."""
    taken = artifact_bytes(repository)
    if taken + adding > settings.ARTIFACT_QUOTA_BYTES:
        raise QuotaExceeded(
            f"The artifacts of this repository take {taken} of the {settings.ARTIFACT_QUOTA_BYTES} bytes that they may "
            f"have together: there is no room for {adding} more. Delete some, or keep them for fewer days."
        )


def check_block(blob: Blob, *, size: int) -> None:
    """For a block of this blob, if it is an artifact's. Raises QuotaExceeded."""
    repository_id = Artifact.objects.filter(blob=blob.pk).values_list("run__repository", flat=True).first()
    if repository_id is not None:
        check_quota(repository_id, adding=size)

"""What of artifacts is kept for nobody? The bytes of expired ones, and uploads whose job is over or was given up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from ci.lifecycle.artifacts import drop
from ci.lifecycle.errors import NotFound
from ci.lifecycle.transitions.guard import guarded, lock_run
from ci.models import ACTIVE_STATES, Artifact, ArtifactFile, Blob, RunState
from ci.storage import blobs

logger = logging.getLogger(__name__)

BATCH = 500
# A client that goes on with a file after so long has lost it.
GIVEN_UP = timedelta(days=1)


def tidy_artifacts(*, seconds: float = 40.0) -> None:
    """Batch after batch until there is no more to do, or the time is over."""
    until = time.monotonic() + seconds
    for sweep in (expire_artifacts, remove_abandoned):
        while sweep() >= BATCH and time.monotonic() < until:
            pass


def expire_artifacts() -> int:
    """Remove the bytes of a batch of expired artifacts; their rows stay, with name, size and digest. How many it did.

    Nobody sees them any more from the very moment on; this only makes room.
    """
    expired = Artifact.objects.filter(expires_at__lte=timezone.now(), finalized_at__isnull=False)
    zips = expired.filter(blob__isnull=False).order_by("expires_at", "id")
    # By their files, of which only those that still have bytes are there: most artifacts have none.
    folders = expired.filter(pk__in=ArtifactFile.objects.values("artifact")).order_by("id")
    return _each(zips, _expire) + _each(folders, _expire)


def remove_abandoned() -> int:
    """Remove a batch of uploads that nobody will finish; how many it did."""
    partial = ArtifactFile.objects.filter(blob__in=Blob.objects.filter(_partial())).order_by("id")
    return _each(_abandoned().order_by("id"), _abandon) + _each(partial, _give_up)


def _abandoned() -> QuerySet[Artifact]:
    """Until the run has ended another of its jobs may go on with a folder that a dead one began."""
    over = Q(run__state=RunState.ENDED)
    old = Q(created_at__lte=timezone.now() - GIVEN_UP)
    lost = ~Q(job__state__in=ACTIVE_STATES) & old & Q(blob__isnull=False)
    return Artifact.objects.filter(over | lost, finalized_at=None)


@guarded
def _expire(artifact_id: int) -> None:
    run_id = Artifact.objects.filter(pk=artifact_id).values_list("run_id", flat=True).first()
    if run_id is None:
        return
    lock_run(run_id)
    artifact = Artifact.objects.select_related("blob").filter(pk=artifact_id, expires_at__lte=timezone.now()).first()
    if artifact is None:
        return
    artifact.files.all().delete()  # their blobs, which may be thousands, go with the sweep of orphans
    if (blob := artifact.blob) is not None:
        artifact.blob = None
        artifact.save(update_fields=["blob"])
        blobs.discard(blob)


@guarded
def _abandon(artifact_id: int) -> None:
    artifact = Artifact.objects.filter(pk=artifact_id, finalized_at=None).first()
    if artifact is None:
        return
    lock_run(artifact.run_id)
    if _abandoned().filter(pk=artifact_id).exists():
        drop(artifact_id)


@guarded
def _give_up(file_id: int) -> None:
    run_id = ArtifactFile.objects.filter(pk=file_id).values_list("artifact__run_id", flat=True).first()
    if run_id is None:
        return
    lock_run(run_id)
    file = ArtifactFile.objects.filter(pk=file_id).first()
    if file is None:
        return
    # The lock of the run keeps off who begins it anew; who commits its bytes holds only that of the blob.
    blob = Blob.objects.select_for_update(no_key=True).filter(pk=file.blob_id).filter(_partial()).first()
    if blob is not None:
        file.delete()
        blobs.discard(blob)


def _partial() -> Q:
    """Of blobs: given up, as far as one can tell."""
    return Q(committed_at=None, created_at__lte=timezone.now() - GIVEN_UP)


def _each(rows: QuerySet[Artifact] | QuerySet[ArtifactFile], act: Callable[[int], None]) -> int:
    """One that fails must not keep the others."""
    ids = list(rows.values_list("id", flat=True)[:BATCH])
    for row_id in ids:
        try:
            act(row_id)
        except NotFound:
            pass  # its run is being deleted, and it with it
        except Exception:
            logger.exception("sweep of artifact row %s failed", row_id)
    return len(ids)

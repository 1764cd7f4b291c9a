"""What may a run keep, and until when? Artifacts: made by a running job, immutable once finalized, gone in time.

These are of protocol v4, one blob each; those of v3 are folders of files (ci/lifecycle/artifact_folders.py)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.artifact_names import check_name
from ci.lifecycle.artifact_quota import check_quota
from ci.lifecycle.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from ci.lifecycle.runtime_tokens import lock_caller
from ci.lifecycle.storage_policies import artifact_days
from ci.lifecycle.transitions.guard import guarded, lock_run
from ci.models import ACTIVE_STATES, Artifact, Job, Run
from ci.storage import blob_digests, blobs
from forge.models import Repository

ZIP = "application/zip"
# GitHub docs, "Limits for actions/upload-artifact": of one job.
MAX_PER_JOB = 500
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def artifacts_of(run: Run) -> QuerySet[Artifact]:
    """All finalized ones, also those whose bytes are gone because they expired; the newest of a name first."""
    found = Artifact.objects.filter(run=run, finalized_at__isnull=False)
    return found.order_by("name", "-attempt", "-id")


def kept_by(run: Run, *, attempt: int) -> QuerySet[Artifact]:
    """The newest of each name that the run had at the end of this attempt, also those that have expired since."""
    newest = artifacts_of(run).filter(attempt__lte=attempt).distinct("name").values("pk")
    return Artifact.objects.filter(pk__in=newest).order_by("name")


def artifacts_in(repository: Repository) -> QuerySet[Artifact]:
    """All finalized ones of all runs, the newest first."""
    return Artifact.objects.filter(run__repository=repository, finalized_at__isnull=False).order_by("-id")


def visible_artifacts(run: Run) -> QuerySet[Artifact]:
    """Those that can be downloaded, of any attempt; the newest of a name first."""
    return artifacts_of(run).filter(expires_at__gt=timezone.now())


@guarded
def create_artifact(
    *,
    job: Job,
    name: str,
    mime_type: str = ZIP,
    retention_days: int | None = None,
    expires_at: datetime | None = None,
) -> Artifact:
    """An artifact to upload to, with a blob of its own; what this job, or a dead one, left unfinished starts anew.

    Raises InvalidInput, AlreadyExists, Conflict (too many), and what `lock_caller` does.
    """
    check_name(name)
    locked = lock_caller(job)
    expiry = expiry_of(locked.run.repository, days=retention_days, at=expires_at)
    make_room(locked, name)
    return Artifact.objects.create(
        run=locked.run,
        attempt=locked.attempt,
        job=locked,
        name=name,
        blob=blobs.create(content_type=mime_type[:255]),
        expires_at=expiry,
    )


def finalize_artifact(*, job: Job, name: str, size: int, digest: str = "") -> Artifact:
    """Make visible what was uploaded; a repeat changes nothing. `digest`, "sha256:…", is compared with the bytes.

    Raises NotFound, Conflict (not uploaded, or finalized as something else), InvalidInput (size or digest differ),
    DigestBusy, BlobMissing, BlobLost, and what `lock_caller` does.
    """
    if digest and not _DIGEST.fullmatch(digest):
        raise InvalidInput({"hash": "It must be sha256: and 64 hexadecimal digits in lower case."})
    artifact = _uploaded_by(job, name)
    blob = artifact.blob
    if blob is None or blob.size is None:
        raise Conflict(f"The upload of artifact {name} is not complete: commit its blocks first.")
    if size != blob.size:
        raise InvalidInput({"size": f"The upload has {blob.size} bytes, and not {size}."})
    # Read before any lock: of a large one this takes a while, and a committed blob does not change any more.
    found = artifact.digest or blob_digests.digest(blob)
    if digest and digest != found:
        raise InvalidInput({"hash": f"The bytes that arrived have {found}: upload the artifact again."})
    return _finish(job=job, artifact_id=artifact.pk, blob_id=blob.pk, size=blob.size, digest=found)


@guarded
def _finish(*, job: Job, artifact_id: int, blob_id: int, size: int, digest: str) -> Artifact:
    lock_caller(job)
    artifact = Artifact.objects.filter(pk=artifact_id, blob=blob_id).first()
    if artifact is None:
        raise Conflict("The artifact was deleted, or its upload began anew, while it was being finalized.")
    if artifact.finalized_at is None:
        artifact.size, artifact.digest, artifact.finalized_at = size, digest, timezone.now()
        artifact.save(update_fields=["size", "digest", "finalized_at"])
    return artifact


@guarded
def delete_artifact(*, artifact_id: int, actor: Any = None, job: Job | None = None, by: str = "") -> None:
    """Delete it with its bytes, for a person or for a job of its run. Raises NotFound, and what `lock_caller` does.

    `by` names, for the event, who is neither.
    """
    found = Artifact.objects.filter(pk=artifact_id, finalized_at__isnull=False).first()
    if found is None or (job is not None and found.run_id != job.run_id):
        raise no_artifact()
    if job is not None:
        lock_caller(job)
    else:
        lock_run(found.run_id)
    if not drop(found.pk):
        raise no_artifact()
    by = by or (f"job {job.name}" if job is not None else "")
    events.record("artifact_deleted", run=found.run, actor=actor, detail=f"{found.name}, by {by}" if by else found.name)


def drop(artifact_id: int) -> bool:
    """Within a transaction, under the lock of its run: the rows now, the bytes after the commit.

    Those of protocol v3, which may be thousands of blobs, are left to the sweep of orphans.
    """
    artifact = Artifact.objects.select_related("blob").filter(pk=artifact_id).first()
    if artifact is None:
        return False
    blob = artifact.blob
    artifact.delete()
    if blob is not None:
        blobs.discard(blob)
    return True


def expiry_of(repository: Repository, *, days: int | None = None, at: datetime | None = None) -> datetime:
    """When something made now expires; a workflow may ask for less than the repository allows. Raises InvalidInput."""
    now = timezone.now()
    latest = now + timedelta(days=artifact_days(repository))
    if days is not None and days < 1:
        raise InvalidInput({"retention_days": "An artifact is kept for one day at least."})
    if at is not None and at <= now:
        raise InvalidInput({"expires_at": "An artifact cannot expire before it is made."})
    asked = [at] if at is not None else []
    if days is not None and days < artifact_days(repository):
        asked.append(now + timedelta(days=days))
    return min([latest, *asked])


def no_artifact() -> NotFound:
    return NotFound("There is no such artifact; it may have expired or been deleted.")


def make_room(job: Job, name: str) -> None:
    """Within a transaction, under the lock of the run: for an artifact of this name, which nothing may stand for yet.

    Raises AlreadyExists, Conflict, QuotaExceeded.
    """
    if Artifact.objects.filter(job=job).exclude(name=name).count() >= MAX_PER_JOB:
        raise Conflict(f"A job may have {MAX_PER_JOB} artifacts: put several files into one.")
    known = Artifact.objects.select_related("job").filter(run=job.run, attempt=job.attempt, name=name).first()
    if known is None:
        check_quota(job.run.repository, adding=1)
        return
    if known.finalized_at is not None:
        raise AlreadyExists(
            f"An artifact with the name {name} exists in this attempt of the run; artifacts are not replaced."
        )
    if known.job is not None and known.job_id != job.pk and known.job.state in ACTIVE_STATES:
        raise AlreadyExists(f"The job {known.job.name} is uploading an artifact with the name {name}.")
    drop(known.pk)
    check_quota(job.run.repository, adding=1)


def _uploaded_by(job: Job, name: str) -> Artifact:
    """Raises NotFound."""
    rows = Artifact.objects.select_related("blob").filter(run=job.run_id, attempt=job.attempt, job=job, name=name)
    found = rows.first()
    if found is None or (found.blob is None and found.finalized_at is None):
        raise NotFound(f"This job has created no artifact with the name {name}.")
    return found

"""How do GitHub's clients of artifacts v4 (@actions/artifact 2 and later) keep and find artifacts? ArtifactService.

The two backend ids are those of the token's scope: the run and the job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet

from ci.interop import fields
from ci.interop.twirp import Method
from ci.lifecycle import artifact_downloads, artifacts
from ci.lifecycle.errors import NotAllowed
from ci.models import Artifact, Job
from ci.storage import signed_urls

# Clients take no more (ACTIONS_ARTIFACT_MAX_ARTIFACT_COUNT), and none asks for pages.
MOST_LISTED = 1000


def create(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    _check_own(job, given)
    made = artifacts.create_artifact(
        job=job,
        name=fields.text(given, "name"),
        mime_type=fields.text(given, "mime_type") or artifacts.ZIP,
        expires_at=fields.timestamp(given, "expires_at"),
    )
    assert made.blob is not None
    return {"ok": True, "signed_upload_url": signed_urls.upload_url(made.blob)}


def finalize(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    _check_own(job, given)
    made = artifacts.finalize_artifact(
        job=job,
        name=fields.text(given, "name"),
        size=fields.number(given, "size") or 0,
        digest=fields.text(given, "hash"),
    )
    return {"ok": True, "artifact_id": str(made.pk)}


def list_artifacts(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    _check_run(job, given)
    rows = _found(job)
    if name := fields.text(given, "name_filter"):
        rows = rows.filter(name=name)
    if (wanted := fields.number(given, "id_filter")) is not None:
        rows = rows.filter(pk=wanted)
    return {"artifacts": [_shape(one) for one in rows[:MOST_LISTED]]}


def signed_address(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    return {"signed_url": artifact_downloads.address(_named(job, given))}


def delete(job: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    found = _named(job, given)
    artifacts.delete_artifact(artifact_id=found.pk, job=job)
    return {"ok": True, "artifact_id": str(found.pk)}


METHODS: Mapping[str, Method] = {
    "CreateArtifact": create,
    "FinalizeArtifact": finalize,
    "ListArtifacts": list_artifacts,
    "GetSignedArtifactURL": signed_address,
    "DeleteArtifact": delete,
}


def _found(job: Job) -> QuerySet[Artifact]:
    """What jobs of this run see: the artifacts of all of its attempts, the newest first."""
    return artifacts.visible_artifacts(job.run).filter(blob__isnull=False).order_by("-id")


def _named(job: Job, given: Mapping[str, Any]) -> Artifact:
    """Of one name there may be one in each attempt: the one of the job that is asked for, else the newest.

    Raises NotAllowed, NotFound, InvalidInput.
    """
    _check_run(job, given)
    rows = _found(job).filter(name=fields.text(given, "name"))
    found = rows.filter(job=fields.number(given, "workflow_job_run_backend_id")).first() or rows.first()
    if found is None:
        raise artifacts.no_artifact()
    return found


def _check_run(job: Job, given: Mapping[str, Any]) -> None:
    """Raises NotAllowed, InvalidInput."""
    if fields.number(given, "workflow_run_backend_id") != job.run_id:
        raise NotAllowed(
            "This token is of a job of another run: artifacts of other runs are read through the REST API."
        )


def _check_own(job: Job, given: Mapping[str, Any]) -> None:
    """Raises NotAllowed, InvalidInput."""
    _check_run(job, given)
    if fields.number(given, "workflow_job_run_backend_id") != job.pk:
        raise NotAllowed("This token is of another job.")


def _shape(one: Artifact) -> dict[str, Any]:
    return {
        "workflow_run_backend_id": str(one.run_id),
        "workflow_job_run_backend_id": str(one.job_id or 0),
        "database_id": str(one.pk),
        "name": one.name,
        "size": str(one.size),
        "created_at": _time(one.created_at),
        "digest": one.digest,
    }


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

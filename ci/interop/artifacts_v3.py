"""How do clients of artifacts v3 (@actions/artifact 1) keep and find artifacts? By REST below ACTIONS_RUNTIME_URL.

The bytes of files come by PUT, of any length and often chunked: ci/interop/artifact_file_uploads.py."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import path

from ci.interop import fields
from ci.interop.rest_views import Answer, view
from ci.interop.runtime_calls import body_of
from ci.lifecycle import artifact_folders, runtime_tokens
from ci.lifecycle.artifacts import no_artifact
from ci.lifecycle.errors import NotAllowed
from ci.models import Artifact, ArtifactFile, Job
from ci.storage import signed_urls

BASE = "api/actions_pipeline/_apis/pipelines/workflows/"
# A client asks once for the addresses of all files, and then reads them two at a time.
_DOWNLOAD_SECONDS = 6 * 3600


def create(request: HttpRequest, job: Job, run_id: int) -> Answer:
    check_run(job, run_id)
    given = body_of(request)
    days = fields.number(given, "RetentionDays")
    made = artifact_folders.open_folder(job=job, name=fields.text(given, "Name"), retention_days=days or None)
    return 201, _shape(made)


def finalize(request: HttpRequest, job: Job, run_id: int) -> Answer:
    """Its body says how large the files were before they were packed; what was stored counts here."""
    check_run(job, run_id)
    fields.number(body_of(request), "Size")
    return 200, _shape(artifact_folders.close_folder(job=job, name=request.GET.get("artifactName", "")))


def list_artifacts(request: HttpRequest, job: Job, run_id: int) -> Answer:
    check_run(job, run_id)
    found = artifact_folders.folders_of(job.run)
    if name := request.GET.get("artifactName"):
        found = [one for one in found if one.name == name]
    return 200, {"count": len(found), "value": [_shape(one) for one in found]}


def list_files(request: HttpRequest, job: Job, run_id: int, artifact_id: int) -> Answer:
    check_run(job, run_id)
    found = next((one for one in artifact_folders.folders_of(job.run) if one.pk == artifact_id), None)
    if found is None:
        raise no_artifact()
    entries = [_entry(found, file) for file in artifact_folders.files_of(found)]
    return 200, {"count": len(entries), "value": entries}


def check_run(job: Job, run_id: int) -> None:
    """Raises NotAllowed."""
    if run_id != job.run_id:
        raise NotAllowed(
            "This token is of a job of another run: artifacts of other runs are read through the REST API."
        )


def _shape(artifact: Artifact) -> dict[str, Any]:
    address = f"{runtime_tokens.urls().runtime.rstrip('/')}/_apis/pipelines/workflows/{artifact.run_id}/artifacts"
    return {
        "containerId": artifact.pk,
        "size": artifact.size if artifact.finalized_at else -1,
        "signedContent": None,
        "fileContainerResourceUrl": f"{address}/{artifact.pk}/files",
        "type": "actions_storage",
        "name": artifact.name,
        "url": f"{address}?{urlencode({'artifactName': artifact.name})}",
        "expiresOn": artifact.expires_at.isoformat(),
    }


def _entry(artifact: Artifact, file: ArtifactFile) -> dict[str, Any]:
    address = signed_urls.download_url(file.blob, filename=file.path.rpartition("/")[2], seconds=_DOWNLOAD_SECONDS)
    entry = {
        "containerId": artifact.pk,
        "path": f"{artifact.name}/{file.path}",
        "itemType": "file",
        "status": "created",
        "contentLocation": address,
        "itemLocation": address,
    }
    if not file.blob.content_encoding:  # else it is not known: a client takes 0 for an empty file
        entry["fileLength"] = file.blob.size
    return entry


urlpatterns = [
    path(f"{BASE}<int:run_id>/artifacts", view({"GET": list_artifacts, "POST": create, "PATCH": finalize})),
    path(f"{BASE}<int:run_id>/artifacts/<int:artifact_id>/files", view({"GET": list_files})),
]

"""Which artifacts are there, and how are they downloaded? With GitHub's addresses and shapes, as its clients ask."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404, HttpResponseRedirect
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.authentication import AccessTokenAuthentication, JobActorAuthentication
from ci.api.documentation import NOTHING, errors
from ci.api.owners.base import Need, SignedIn
from ci.api.owners.github_base import GitHubView
from ci.api.owners.github_lists import list_of, listed
from ci.lifecycle import artifact_downloads, artifacts
from ci.models import Artifact, Run
from forge.access import JobActor, can_read, can_write


class ArtifactRun(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    repository_id = serializers.IntegerField()
    head_repository_id = serializers.IntegerField(source="repository_id")
    head_branch = serializers.CharField(source="ref_name")
    head_sha = serializers.CharField(source="sha")


class ArtifactShape(serializers.Serializer[Artifact]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    size_in_bytes = serializers.IntegerField(source="size")
    url = serializers.SerializerMethodField()
    archive_download_url = serializers.SerializerMethodField()
    expired = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(source="finalized_at")
    expires_at = serializers.DateTimeField()
    digest = serializers.SerializerMethodField(help_text="sha256:… of what is downloaded; null if it is made for it.")
    workflow_run = ArtifactRun(source="run")

    def get_url(self, artifact: Artifact) -> str:
        repository = artifact.run.repository
        path = f"{quote(repository.owner.username)}/{quote(repository.name)}/actions/artifacts/{artifact.pk}"
        return f"{settings.SERVER_URL}/api/v1/repos/{path}"

    def get_archive_download_url(self, artifact: Artifact) -> str:
        return f"{self.get_url(artifact)}/zip"

    def get_expired(self, artifact: Artifact) -> bool:
        return artifact.is_expired

    def get_digest(self, artifact: Artifact) -> str | None:
        return artifact.digest or None


_LIST: dict[str, Any] = {
    "tags": ["artifacts"],
    **list_of(
        ArtifactShape,
        "artifacts",
        parameters=[
            OpenApiParameter(
                "name", {"type": "string", "maxLength": 255}, description="Only those of exactly this name."
            )
        ],
    ),
}


class ArtifactsOwnersView(GitHubView):
    """What these views share. A running job may call them too, as far as its `actions` permission goes."""

    authentication_classes = [JobActorAuthentication, AccessTokenAuthentication, SessionAuthentication]

    def page_of(self, rows: QuerySet[Artifact]) -> Response:
        if name := self.request.query_params.get("name"):
            rows = rows.filter(name=name.replace("\0", "\ufffd"))
        rows = rows.select_related("run__repository__owner", "blob").defer("run__payload")
        return listed(self, rows, ArtifactShape, "artifacts")

    def artifact(self, *, need: Need = can_read) -> Artifact:
        """Raises Http404, PermissionDenied."""
        repository = self.repository(need=need)
        rows = artifacts.artifacts_in(repository).select_related("run__repository__owner", "blob")
        found = rows.filter(pk=self.kwargs["artifact_id"]).first()
        if found is None:
            raise Http404(f"There is no such artifact in {repository}.")
        return found


class ArtifactsView(ArtifactsOwnersView):
    @extend_schema(summary="List the artifacts of a repository", description="The newest first.", **_LIST)
    def get(self, request: Request, owner: str, repository: str) -> Response:
        return self.page_of(artifacts.artifacts_in(self.repository()))


class RunArtifactsView(ArtifactsOwnersView):
    @extend_schema(summary="List the artifacts of a run", description="Of all attempts, the newest first.", **_LIST)
    def get(self, request: Request, owner: str, repository: str, run_id: int) -> Response:
        found = self.repository()
        if not Run.objects.filter(repository=found, pk=run_id).exists():
            raise Http404(f"There is no such run in {found}.")
        return self.page_of(artifacts.artifacts_in(found).filter(run=run_id))


class ArtifactView(ArtifactsOwnersView):
    @extend_schema(
        summary="Show an artifact", tags=["artifacts"], responses={200: ArtifactShape, **errors(401, 404, 429)}
    )
    def get(self, request: Request, owner: str, repository: str, artifact_id: int) -> Response:
        return Response(ArtifactShape(self.artifact()).data)

    @extend_schema(
        summary="Delete an artifact",
        tags=["artifacts"],
        responses={204: NOTHING, **errors(401, 403, 404, 429)},
    )
    def delete(self, request: Request, owner: str, repository: str, artifact_id: int) -> Response:
        found = self.artifact(need=can_write)
        if isinstance(request.user, JobActor):
            artifacts.delete_artifact(artifact_id=found.pk, by=request.user.name)
        else:
            artifacts.delete_artifact(artifact_id=found.pk, actor=request.user)
        return Response(status=204)


class ArtifactZipView(ArtifactsOwnersView):
    permission_classes = [SignedIn]

    @extend_schema(
        summary="Download an artifact",
        description="Leads to an address that needs no further proof for ten minutes. An artifact of protocol v3 is a "
        "folder of files: there, its zip is made as it is sent.",
        tags=["artifacts"],
        responses={
            302: OpenApiResponse(description="`Location` says where it is."),
            **errors(401, 404, 410, 429),
        },
    )
    def get(self, request: Request, owner: str, repository: str, artifact_id: int) -> HttpResponseRedirect:
        return HttpResponseRedirect(artifact_downloads.address(self.artifact()))

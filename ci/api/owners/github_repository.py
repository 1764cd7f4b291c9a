"""What is this repository? At GitHub's address, in as much of its shape as clients of GitHub read."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.authentication import AccessTokenAuthentication, JobMetadataAuthentication
from ci.api.documentation import errors
from ci.api.owners.github_base import GitHubView
from forge.models import Repository


class OwnerShape(serializers.Serializer[Any]):
    login = serializers.CharField(source="username")
    id = serializers.IntegerField()


class GitHubRepository(serializers.Serializer[Repository]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    full_name = serializers.CharField(source="__str__")
    owner = OwnerShape()
    private = serializers.BooleanField()
    description = serializers.CharField()
    default_branch = serializers.CharField()
    html_url = serializers.SerializerMethodField()
    clone_url = serializers.CharField()
    created_at = serializers.DateTimeField()
    pushed_at = serializers.DateTimeField(allow_null=True)

    def get_html_url(self, repository: Repository) -> str:
        return settings.SERVER_URL + repository.get_absolute_url()


class GitHubRepositoryView(GitHubView):
    """actions/checkout asks it, with its job's token, for the default branch of another repository."""

    authentication_classes = [JobMetadataAuthentication, AccessTokenAuthentication, SessionAuthentication]

    @extend_schema(
        operation_id="github_repository",
        summary="Show a repository as GitHub does",
        description="For clients of GitHub's REST API. A running job may ask with its own token, whatever that may do.",
        tags=["repositories"],
        responses={200: GitHubRepository, **errors(401, 404, 429)},
    )
    def get(self, request: Request, owner: str, repository: str) -> Response:
        return Response(GitHubRepository(self.repository()).data)

"""How are repositories listed, made, changed and deleted?"""

from __future__ import annotations

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, NOTHING, errors, pages
from ci.api.owners.base import OwnersView
from ci.api.owners.serializers import NewRepository, RepositoryChange, RepositoryShape
from forge import repositories
from forge.access import can_administer, readable_repositories
from forge.models import Repository


class RepositoriesView(OwnersView):
    @extend_schema(
        summary="List repositories",
        description="All that the caller may read.",
        tags=["repositories"],
        **pages(RepositoryShape),
    )
    def get(self, request: Request) -> Response:
        return self.page(readable_repositories(request.user).order_by("owner__username", "name", "id"), RepositoryShape)

    @extend_schema(
        summary="Create a repository",
        description="Empty, owned by the caller.",
        tags=["repositories"],
        request=NewRepository,
        responses={201: RepositoryShape, **errors(*BODY, 401, 429)},
    )
    def post(self, request: Request) -> Response:
        given = self.given(NewRepository)
        repository = repositories.create_repository(owner=self.person, **given)
        return Response(RepositoryShape(repository).data, status=201)


class RepositoryView(OwnersView):
    @extend_schema(
        summary="Show a repository",
        tags=["repositories"],
        responses={200: RepositoryShape, **errors(401, 404, 429)},
    )
    def get(self, request: Request, owner: str, repository: str) -> Response:
        return Response(RepositoryShape(self.repository()).data)

    @extend_schema(
        summary="Change a repository",
        description="What is left out stays as it is.",
        tags=["repositories"],
        request=RepositoryChange,
        responses={200: RepositoryShape, **errors(*BODY, 401, 403, 404, 429)},
    )
    def patch(self, request: Request, owner: str, repository: str) -> Response:
        found = self.repository(need=can_administer)
        given = dict(self.given(RepositoryChange))
        with transaction.atomic():
            if "name" in given:
                repositories.rename_repository(repository=found, name=given.pop("name"))
            if "default_branch" in given:
                repositories.set_default_branch(repository=found, branch=given.pop("default_branch"))
            if given:
                Repository.objects.filter(pk=found.pk).update(**given)
        return Response(RepositoryShape(Repository.objects.select_related("owner").get(pk=found.pk)).data)

    @extend_schema(
        summary="Delete a repository",
        description="With its runs, logs, secrets and members. It cannot be brought back.",
        tags=["repositories"],
        responses={204: NOTHING, **errors(401, 403, 404, 429)},
    )
    def delete(self, request: Request, owner: str, repository: str) -> Response:
        repositories.delete_repository(repository=self.repository(need=can_administer))
        return Response(status=204)

"""Which workflows does a repository have, and how are they started and switched off?"""

from __future__ import annotations

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, errors, pages
from ci.api.owners.base import OwnersView
from ci.api.owners.serializers import (
    Dispatch,
    RepositoryDispatch,
    RunIds,
    RunShape,
    WorkflowChange,
    WorkflowShape,
)
from ci.lifecycle.dispatch import dispatch_repository, dispatch_workflow
from ci.lifecycle.workflow_switch import enable_workflow
from ci.models import Workflow
from forge.access import can_write
from forge.models import Repository

_FOLDER = ".github/workflows/"


def workflow_of(repository: Repository, file: str) -> Workflow:
    """The workflow with this file name. Raises Http404."""
    found = Workflow.objects.filter(repository=repository, path=_FOLDER + file).first()
    if found is None:
        raise Http404(f"There is no workflow {_FOLDER}{file}.")
    return found


class WorkflowsView(OwnersView):
    @extend_schema(summary="List workflows", tags=["workflows"], **pages(WorkflowShape, 404))
    def get(self, request: Request, owner: str, repository: str) -> Response:
        return self.page(self.repository().workflows.order_by("name", "path"), WorkflowShape)


class WorkflowView(OwnersView):
    @extend_schema(
        summary="Show a workflow",
        description="With what is wrong with its file on the default branch.",
        tags=["workflows"],
        responses={200: WorkflowShape, **errors(401, 404, 429)},
    )
    def get(self, request: Request, owner: str, repository: str, file: str) -> Response:
        return Response(WorkflowShape(workflow_of(self.repository(), file)).data)

    @extend_schema(
        summary="Enable or disable a workflow",
        description="A disabled one is started by nothing; runs that there are already go on.",
        tags=["workflows"],
        request=WorkflowChange,
        responses={200: WorkflowShape, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def patch(self, request: Request, owner: str, repository: str, file: str) -> Response:
        found = workflow_of(self.repository(need=can_write), file)
        given = self.given(WorkflowChange)
        changed = enable_workflow(workflow_id=found.pk, actor=request.user, **given)
        return Response(WorkflowShape(changed).data)


class DispatchView(OwnersView):
    @extend_schema(
        summary="Start a workflow by hand",
        description="As it is on `ref`; it needs the `workflow_dispatch` trigger there.",
        tags=["workflows"],
        request=Dispatch,
        responses={201: RunShape, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def post(self, request: Request, owner: str, repository: str, file: str) -> Response:
        found = self.repository(need=can_write)
        given = self.given(Dispatch)
        run = dispatch_workflow(
            repository=found, path=_FOLDER + file, ref=given["ref"], inputs=given["inputs"], actor=request.user
        )
        return Response(RunShape(run).data, status=201)


class RepositoryDispatchView(OwnersView):
    @extend_schema(
        summary="Fire repository_dispatch",
        description="At the workflows of the default branch.",
        tags=["workflows"],
        request=RepositoryDispatch,
        responses={201: RunIds, **errors(*BODY, 401, 403, 404, 429)},
    )
    def post(self, request: Request, owner: str, repository: str) -> Response:
        found = self.repository(need=can_write)
        runs = dispatch_repository(repository=found, actor=request.user, **self.given(RepositoryDispatch))
        return Response({"run_ids": [run.pk for run in runs]}, status=201)

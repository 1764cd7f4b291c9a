"""Which runs are there, and how are they cancelled and run again?"""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, OpenApiTypes, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, errors, pages
from ci.api.owners.base import Need, OwnersView
from ci.api.owners.serializers import Cancelled, Expected, JobShape, RunShape
from ci.lifecycle import transitions
from ci.lifecycle.run_search import of_branch, of_state
from ci.models import Job, Run, RunConclusion, RunState
from forge.access import can_read, can_write

_STATUSES = [*RunState.choices, *RunConclusion.choices]


class RunFilters(django_filters.FilterSet):
    workflow = django_filters.CharFilter(method="by_workflow", max_length=255, label="The name of its file.")
    branch = django_filters.CharFilter(method="by_branch", max_length=1024, label="A branch or tag.")
    event = django_filters.CharFilter(max_length=50)
    actor = django_filters.CharFilter(field_name="actor_name", lookup_expr="iexact", max_length=150)
    status = django_filters.ChoiceFilter(method="by_status", choices=_STATUSES, label="A state or conclusion.")

    class Meta:
        model = Run
        fields: list[str] = []

    def by_workflow(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return runs.filter(workflow_path=f".github/workflows/{value}")

    def by_branch(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return of_branch(runs, value)

    def by_status(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return of_state(runs, value)


class _JobFilter(serializers.Serializer[Any]):
    attempt = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)


class RunOwnersView(OwnersView):
    """What the views of one run share."""

    def run(self, *, need: Need = can_read) -> Run:
        """Raises Http404, PermissionDenied."""
        repository = self.repository(need=need)
        found = Run.objects.filter(repository=repository, pk=self.kwargs["run_id"]).first()
        if found is None:
            raise Http404(f"There is no such run in {repository}.")
        found.repository = repository
        return found


class RunsView(OwnersView):
    @extend_schema(
        summary="List runs",
        description="The newest first.",
        tags=["runs"],
        **pages(
            RunShape,
            400,
            parameters=[
                OpenApiParameter("workflow", description="The name of its file, as `ci.yml`."),
                OpenApiParameter("branch", description="A branch or tag."),
                OpenApiParameter("event", description="As `push`."),
                OpenApiParameter("actor", description="The user name of who caused it."),
                OpenApiParameter(
                    "status", enum=[value for value, _ in _STATUSES], description="A state or conclusion."
                ),
            ],
        ),
    )
    def get(self, request: Request, owner: str, repository: str) -> Response:
        rows = Run.objects.filter(repository=self.repository()).select_related("repository__owner").defer("payload")
        filters = RunFilters(request.query_params, queryset=rows.order_by("-id"))
        if not filters.is_valid():
            raise ValidationError(filters.errors)
        return self.page(filters.qs, RunShape)


class RunView(RunOwnersView):
    @extend_schema(summary="Show a run", tags=["runs"], responses={200: RunShape, **errors(401, 404, 429)})
    def get(self, request: Request, owner: str, repository: str, run_id: int) -> Response:
        return Response(RunShape(self.run()).data)


class RunJobsView(RunOwnersView):
    @extend_schema(
        summary="List the jobs of a run",
        description="Of its newest attempt, or of `attempt`.",
        tags=["runs"],
        **pages(JobShape, 400, parameters=[OpenApiParameter("attempt", OpenApiTypes.INT)]),
    )
    def get(self, request: Request, owner: str, repository: str, run_id: int) -> Response:
        run = self.run()
        shape = _JobFilter(data=request.query_params)
        shape.is_valid(raise_exception=True)
        rows = Job.objects.filter(run=run, attempt=shape.validated_data.get("attempt", run.attempt))
        rows = rows.select_related("run__repository__owner", "environment").defer("definition")
        rows = rows.annotate(uses=KT("definition__uses"))
        return self.page(rows.order_by("level", "key", "matrix_index"), JobShape)


class _CancelView(RunOwnersView):
    force = False

    def cancel(self) -> Response:
        run = self.run(need=can_write)
        given = self.given(Expected)
        jobs = transitions.cancel_run(run_id=run.pk, actor=self.request.user, force=self.force, **given)
        return Response({"jobs": jobs})


class RunCancelView(_CancelView):
    @extend_schema(
        summary="Cancel a run",
        description="What waits ends at once; what runs is asked to stop and has some minutes for its post steps.",
        tags=["runs"],
        request=Expected,
        responses={200: Cancelled, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def post(self, request: Request, owner: str, repository: str, run_id: int) -> Response:
        return self.cancel()


class RunForceCancelView(_CancelView):
    force = True

    @extend_schema(
        summary="Cancel a run by force",
        description="Everything ends at once, without post steps.",
        tags=["runs"],
        request=Expected,
        responses={200: Cancelled, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def post(self, request: Request, owner: str, repository: str, run_id: int) -> Response:
        return self.cancel()


class _RerunView(RunOwnersView):
    mode = "all"

    def rerun(self) -> Response:
        run = self.run(need=can_write)
        given = self.given(Expected)
        again = transitions.rerun(run_id=run.pk, actor=self.request.user, mode=self.mode, **given)
        return Response(RunShape(again).data, status=201)


class RunRerunView(_RerunView):
    @extend_schema(
        summary="Run all jobs again",
        description="As a new attempt of the run; earlier attempts stay readable.",
        tags=["runs"],
        request=Expected,
        responses={201: RunShape, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def post(self, request: Request, owner: str, repository: str, run_id: int) -> Response:
        return self.rerun()


class RunRerunFailedView(_RerunView):
    mode = "failed"

    @extend_schema(
        summary="Run the failed jobs again",
        description="And those that were cancelled, and all that depend on them.",
        tags=["runs"],
        request=Expected,
        responses={201: RunShape, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def post(self, request: Request, owner: str, repository: str, run_id: int) -> Response:
        return self.rerun()

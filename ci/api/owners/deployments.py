"""What was deployed to which environment?"""

from __future__ import annotations

from typing import Any

import django_filters
from django.conf import settings
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import pages
from ci.api.owners.base import OwnersView
from ci.lifecycle.deployments import deployments
from ci.models import DeploymentState, Job


class DeploymentShape(serializers.ModelSerializer[Job]):
    id = serializers.IntegerField(help_text="Of the job that deploys.")
    environment: Any = serializers.SlugRelatedField(slug_field="name", read_only=True)
    state = serializers.ChoiceField(source="deployment_state", choices=DeploymentState.choices)
    run_id = serializers.IntegerField()
    job_name = serializers.CharField(source="name")
    workflow_name = serializers.CharField(source="run.workflow_name")
    ref = serializers.CharField(source="run.ref")
    sha = serializers.CharField(source="run.sha")
    creator = serializers.CharField(source="deployed_by", help_text="The user name of who started it.")
    html_url = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = [
            "id",
            "environment",
            "state",
            "environment_url",
            "ref",
            "sha",
            "creator",
            "workflow_name",
            "run_id",
            "attempt",
            "job_name",
            "created_at",
            "started_at",
            "ended_at",
            "html_url",
        ]

    def get_html_url(self, job: Job) -> str:
        return settings.SERVER_URL + job.get_absolute_url()


class DeploymentFilters(django_filters.FilterSet):
    environment = django_filters.CharFilter(field_name="environment__name", lookup_expr="iexact", max_length=255)
    state = django_filters.ChoiceFilter(field_name="deployment_state", choices=DeploymentState.choices)
    ref = django_filters.CharFilter(method="by_ref", max_length=1024)
    sha = django_filters.CharFilter(field_name="run__sha", max_length=64)

    class Meta:
        model = Job
        fields: list[str] = []

    def by_ref(self, rows: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        return rows.filter(run__ref__in=[value, f"refs/heads/{value}", f"refs/tags/{value}"])


class DeploymentsView(OwnersView):
    @extend_schema(
        summary="List deployments",
        description="The newest first: every job that names an environment, unless its `environment.deployment` is "
        "false. A later success in the same environment makes an earlier one `inactive`.",
        tags=["environments"],
        **pages(
            DeploymentShape,
            400,
            parameters=[
                OpenApiParameter("environment", description="The name of an environment, compared without case."),
                OpenApiParameter("state", enum=DeploymentState.values),
                OpenApiParameter("ref", description="A branch or tag."),
                OpenApiParameter("sha", description="The whole SHA of a commit."),
            ],
        ),
    )
    def get(self, request: Request, owner: str, repository: str) -> Response:
        found = self.repository()
        rows = (
            deployments(found)
            .select_related("run__repository__owner", "environment")
            .defer("definition", "outputs", "run__payload")
        )
        filters = DeploymentFilters(request.query_params, queryset=rows)
        if not filters.is_valid():
            raise ValidationError(filters.errors)
        return self.page(filters.qs, DeploymentShape)

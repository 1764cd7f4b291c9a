"""What did a job do, and how is one job cancelled or run again?"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models.fields.json import KT
from django.http import Http404, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, OpenApiTypes, extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, NOTHING, errors
from ci.api.owners.base import Need, OwnersView
from ci.api.owners.serializers import Expected, JobDetail, RunShape
from ci.lifecycle import transitions
from ci.lifecycle.waiting import why
from ci.models import Job
from ci.storage import logs
from forge.access import can_read, can_write


class PlainText(BaseRenderer):
    """For clients that take nothing but text: the log itself is streamed, so this renders only its errors."""

    media_type = "text/plain"
    format = "txt"

    def render(self, data: object, *args: object, **options: object) -> bytes:
        return JSONRenderer().render(data)


class JobOwnersView(OwnersView):
    def job(self, *, need: Need = can_read) -> Job:
        """Raises Http404, PermissionDenied."""
        repository = self.repository(need=need)
        rows = Job.objects.select_related("run", "environment", "parent").annotate(uses=KT("definition__uses"))
        found = rows.filter(run__repository=repository, pk=self.kwargs["job_id"]).first()
        if found is None:
            raise Http404(f"There is no such job in {repository}.")
        found.run.repository = repository
        return found


class JobView(JobOwnersView):
    @extend_schema(
        summary="Show a job",
        description="With its steps and, while it waits, with what it waits for.",
        tags=["jobs"],
        responses={200: JobDetail, **errors(401, 404, 429)},
    )
    def get(self, request: Request, owner: str, repository: str, job_id: int) -> Response:
        job = self.job()
        job.waits_for = why(job)  # type: ignore[attr-defined]
        return Response(JobDetail(job).data)


class JobLogsView(JobOwnersView):
    renderer_classes = [JSONRenderer, PlainText]

    @extend_schema(
        summary="Read a job's log",
        description="All lines so far, as text.",
        tags=["jobs"],
        parameters=[OpenApiParameter("timestamps", OpenApiTypes.BOOL, description="Each line after its time.")],
        responses={
            (200, "text/plain"): OpenApiResponse(OpenApiTypes.STR, description="UTF-8, with ANSI sequences as sent."),
            **errors(401, 404, 429),
        },
    )
    def get(self, request: Request, owner: str, repository: str, job_id: int) -> HttpResponseBase:
        job = self.job()
        source = job.carried_from_id or job.pk
        timestamps = request.query_params.get("timestamps", "").lower() in ("1", "true")
        return StreamingHttpResponse(_begun(logs.raw(source, timestamps)), content_type="text/plain; charset=utf-8")


def _begun(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks, the first one read now: a log that is lost must be an error and not a broken-off answer."""
    first = next(blocks, b"")

    def rest() -> Iterator[bytes]:
        yield first
        yield from blocks

    return rest()


class JobCancelView(JobOwnersView):
    @extend_schema(
        summary="Cancel a job",
        tags=["jobs"],
        request=Expected,
        responses={204: NOTHING, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def post(self, request: Request, owner: str, repository: str, job_id: int) -> Response:
        job = self.job(need=can_write)
        transitions.cancel_job(job_id=job.pk, actor=request.user, **self.given(Expected))
        return Response(status=204)


class JobRerunView(JobOwnersView):
    @extend_schema(
        summary="Run a job again",
        description="With all jobs that depend on it, as a new attempt of its run. `version` is the run's.",
        tags=["jobs"],
        request=Expected,
        responses={201: RunShape, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def post(self, request: Request, owner: str, repository: str, job_id: int) -> Response:
        job = self.job(need=can_write)
        given = self.given(Expected)
        run = transitions.rerun(run_id=job.run_id, actor=request.user, mode="job", job_id=job.pk, **given)
        return Response(RunShape(run).data, status=201)

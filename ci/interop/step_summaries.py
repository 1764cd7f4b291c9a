"""Where does a Gitea runner put what steps wrote to $GITHUB_STEP_SUMMARY? To an address for each step of its job."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import path

from ci.interop.bodies import BadBody
from ci.interop.rest_views import Answer, view
from ci.interop.step_names import step_names
from ci.lifecycle.errors import NotFound
from ci.lifecycle.summaries import keep_summary
from ci.models import Job

# Told in the answer to Declare: the runner hands none in to a server that does not say so.
CAPABILITIES_HEADER, CAPABILITY = "x-gitea-actions-capabilities", "job-summary"
LARGEST = 1024 * 1024


def _put(request: HttpRequest, job: Job, *, run_id: int, job_id: int, index: int) -> Answer:
    names = step_names(job)
    if (job.run_id, job.pk) != (run_id, job_id) or index >= len(names):
        raise NotFound("The job of this token has no such step.")
    raw = request.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise BadBody(413, f"A summary has at most {LARGEST} bytes.")
    # The set-up stands before the steps of the workflow.
    keep_summary(job=job, number=index + 2, name=names[index], text=raw.decode("utf-8", "replace"))
    return 204, None


urlpatterns = [
    path(
        "api/actions_pipeline/_apis/pipelines/workflows/<int:run_id>/jobs/<int:job_id>/steps/<int:index>/summary",
        view({"PUT": _put}),
    ),
]

"""What does an id token say of its job?

Source of the claims: GitHub docs, "OpenID Connect reference". All values but the times are texts, as there."""

from __future__ import annotations

from django.conf import settings

from ci.lifecycle import contexts, job_workflow
from ci.models import Job
from forge.models import Repository

# Of the `github` context, under the same names.
_FROM_CONTEXT = (
    *("actor", "actor_id", "base_ref", "event_name", "head_ref", "ref", "ref_type", "repository", "repository_id"),
    *("repository_owner", "repository_owner_id", "run_id", "run_number", "sha", "workflow", "workflow_ref"),
    "workflow_sha",
)
ALWAYS = (
    *("aud", "exp", "iat", "iss", "jti", "nbf", "sub", *_FROM_CONTEXT, "job_workflow_ref", "ref_protected"),
    *("repository_visibility", "run_attempt", "runner_environment"),
)
SOMETIMES = ("environment", "job_workflow_sha")


def claims(job: Job) -> dict[str, str]:
    """Who the job is: subject and all else that does not depend on the moment or the audience."""
    run = job.run
    context = contexts.github(run)
    found = {name: str(context[name]) for name in _FROM_CONTEXT}
    found |= {
        "sub": _subject(job),
        "run_attempt": str(job.attempt),
        "ref_protected": str(context["ref_protected"]).lower(),
        "repository_visibility": "private" if run.repository.private else "public",
        "runner_environment": "self-hosted",
        **_job_workflow(job),
    }
    return {**found, "environment": job.environment_name} if job.environment_name else found


def default_audience(repository: Repository) -> str:
    """The address of the repository's owner."""
    return f"{settings.SERVER_URL}/{repository.owner.username}"


def _subject(job: Job) -> str:
    """What verifiers compare first. A colon within a part is written as %3A, so that no part can look like two."""
    run = job.run
    if job.environment_name:
        what = "environment:" + job.environment_name.replace(":", "%3A")
    elif run.event == "pull_request":
        what = "pull_request"
    else:
        what = f"ref:{run.ref}"
    return f"repo:{run.repository}:{what}"


def _job_workflow(job: Job) -> dict[str, str]:
    """The file that the job stands in: of a called workflow that one, else the run's own."""
    file = job_workflow.of(job)
    found = {"job_workflow_ref": file.file_ref}
    return {**found, "job_workflow_sha": file.sha} if file.sha else found

"""How do the log tests make a job, write lines and read them back?"""

from django.contrib.auth.models import User

from ci.models import Job, Run, Workflow
from ci.storage import logs
from forge.models import Repository

TIME = "2026-11-30T12:00:00.000000Z"
LIMITS = {"max_lines": 10_000, "max_bytes": 64 * 1024 * 1024}


def batch(*texts):
    return [(TIME, text) for text in texts]


def add(job_id, offset, *texts, **limits):
    return logs.append(job_id=job_id, offset=offset, lines=batch(*texts), **{**LIMITS, **limits})


def texts(job_id, first=0, count=10_000):
    return [line.text for line in logs.lines(job_id, first, count)]


def make_job() -> Job:
    owner = User.objects.create_user("log-owner")
    repository = Repository.objects.create(owner=owner, name="logs")
    workflow = Workflow.objects.create(repository=repository, path=".github/workflows/ci.yml", name="CI")
    run = Run.objects.create(
        repository=repository,
        workflow=workflow,
        workflow_path=workflow.path,
        workflow_name="CI",
        number=1,
        title="logs",
        event="push",
        ref="refs/heads/main",
        sha="1" * 40,
    )
    return Job.objects.create(run=run, key="build", name="build", hold="needs")

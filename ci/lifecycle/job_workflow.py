"""Which workflow file does a job stand in? In a called workflow not that of its run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ci.models import Job
from forge.git import bare
from forge.models import Repository


@dataclass(frozen=True, slots=True)
class JobWorkflow:
    """The file's repository, path and commit. `ref`: the whole name of the branch or tag it was asked of, or what the
    call wrote where there is no such ref. `sha` is None where the run was planned before commits were kept."""

    repository: str
    path: str
    ref: str
    sha: str | None

    @property
    def file_ref(self) -> str:
        """As `github.workflow_ref` is written."""
        return f"{self.repository}/{self.path}@{self.ref}"


def of(job: Job) -> JobWorkflow:
    """The file of a job; of one in a called workflow the file that was called."""
    run = job.run
    called: dict[str, Any] = job.parent.definition["called"] if job.parent is not None else {}
    path = called.get("path") or run.workflow_path
    if not called.get("repository"):
        return JobWorkflow(str(run.repository), path, run.ref, run.sha)
    return _elsewhere(called["repository"], path, str(called["ref"]), called.get("sha"))


def context(job: Job) -> dict[str, Any]:
    """What the forge knows of the `job` context (GitHub docs, "Contexts reference"); a job is its own check run."""
    file = of(job)
    return {
        "check_run_id": job.pk,
        "workflow_ref": file.file_ref,
        "workflow_sha": file.sha or "",
        "workflow_repository": file.repository,
        "workflow_file_path": file.path,
    }


def _elsewhere(name: str, path: str, ref: str, sha: str | None) -> JobWorkflow:
    """By the repository's own spelling and the whole name of the ref."""
    owner, _, short = name.partition("/")
    repository = Repository.objects.filter(owner__username__iexact=owner, name__iexact=short).first()
    if repository is None:
        return JobWorkflow(name, path, ref, sha)
    whole = [f"refs/heads/{ref}", f"refs/tags/{ref}"]  # in the order in which the file was looked for
    found = bare.refs_at(repository, whole)
    return JobWorkflow(str(repository), path, next((full for full in whole if found[full]), ref), sha)

"""What does a push start? Every workflow of the pushed commit that it matches, each once, however often asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.utils import timezone

from ci.lifecycle import webhook_payloads, workflow_files
from ci.lifecycle.transitions import Cause, create_run, create_startup_failure
from ci.models import Run, RunConclusion, Workflow
from ci.workflow import Event, commit, triggers
from ci.workflow import Workflow as Document
from forge.git import bare
from forge.models import Push

logger = logging.getLogger(__name__)

MAX_LINES = 40


def plan_push(push_id: int) -> list[Run]:
    """Plan a settled push and return its runs. A push that is gone, refused or planned already changes nothing."""
    push = Push.objects.select_related("repository__owner", "pusher").filter(pk=push_id).first()
    if push is None or push.state != Push.State.SETTLED:
        return []
    if push.planned_at is None:
        if not push.deleted:
            _plan(push)
        Push.objects.filter(pk=push.pk, planned_at=None).update(planned_at=timezone.now())
    return list(Run.objects.filter(push=push).select_related("repository__owner").order_by("workflow_path"))


def _plan(push: Push) -> None:
    repository = push.repository
    sha = bare.resolve(repository, push.after)
    if sha is None:  # a tag of a tree or blob, or a commit that a later push removed and git collected
        return
    loaded = workflow_files.load_all(workflow_files.read(repository, sha))
    if push.ref == f"refs/heads/{repository.default_branch}":
        workflow_files.remember(repository, loaded)
    head = bare.commit(repository, sha)
    if push.by_job or head is None or commit.skips_ci(f"{head.subject}\n\n{head.body}"):
        return
    disabled = set(Workflow.objects.filter(repository=repository, enabled=False).values_list("path", flat=True))
    payload = webhook_payloads.push(push, _new_commits(push, sha))
    paths = _changed_paths(push)
    for path, document in loaded.items():
        if path not in disabled:
            _plan_one(push, path, document, sha=sha, title=head.subject, payload=payload, paths=paths)


def _new_commits(push: Push, sha: str) -> list[bare.Commit]:
    limit = webhook_payloads.MAX_COMMITS
    if push.created:
        return bare.commits(push.repository, sha, limit=1)
    new = bare.count(push.repository, sha, before=push.before)
    return bare.commits(push.repository, sha, limit=max(1, min(limit, new)))


def _changed_paths(push: Push) -> tuple[str, ...] | None:
    if not push.ref.startswith("refs/heads/"):
        return None
    paths = bare.changed_paths(push.repository, push.before, push.after, ref=push.ref)
    return tuple(paths) if paths is not None else None


def _plan_one(
    push: Push,
    path: str,
    document: workflow_files.Loaded,
    *,
    sha: str,
    title: str,
    payload: dict[str, Any],
    paths: tuple[str, ...] | None,
) -> None:
    cause = Cause(
        repository=push.repository,
        path=path,
        event="push",
        payload=payload,
        ref=push.ref,
        sha=sha,
        title=title or sha[:7],
        actor=push.pusher,
        trusted=True,  # only somebody with write access can push
        push=push,
    )
    if not isinstance(document, Document):
        create_startup_failure(cause, document)
        return
    github = {"ref": push.ref, "event_name": "push", "event": payload, "sha": sha}
    if triggers.matches(document, Event(name="push", github=github, changed_paths=paths)):
        create_run(cause, document)


def report(push_ids: Sequence[int]) -> list[str]:
    """What to tell the person who pushed: which runs started, or what is wrong where.

    Plans the pushes at once; should that fail, the task that was queued with the push does it later.
    """
    lines: list[str] = []
    for push_id in push_ids:
        try:
            runs = plan_push(push_id)
        except Exception:  # the push itself stands, and its task will try again
            logger.exception("push %s could not be planned at once", push_id)
            lines.append("Workflows: planning takes a moment longer, see the repository's Actions page.")
            continue
        for run in runs:
            lines.extend(_described(run))
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"… and {len(lines) - MAX_LINES} lines more, see the repository's Actions page."]
    return lines


def _described(run: Run) -> list[str]:
    url = f"{settings.SERVER_URL}{run.get_absolute_url()}"
    if run.conclusion == RunConclusion.STARTUP_FAILURE:
        problems = [f"  {_where(problem)}: {problem['message']}" for problem in run.problems]
        return [f"Workflow {run.workflow_path} cannot run: {url}", *problems]
    return [f"Workflow {run.workflow_name} #{run.number} started: {url}"]


def _where(problem: dict[str, Any]) -> str:
    place = f":{problem['line']}:{problem['column']}" if problem["line"] else ""
    return f"{problem['path']}{place}"

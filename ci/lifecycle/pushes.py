"""What does a push start? Every workflow of the pushed commit that it matches, each once, however often asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.utils import timezone

from ci.lifecycle import webhook_payloads, workflow_files
from ci.lifecycle.firing import Trigger, fire
from ci.lifecycle.transitions import Cause
from ci.models import Run, RunConclusion
from ci.workflow import commit
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
        _plan(push)
        Push.objects.filter(pk=push.pk, planned_at=None).update(planned_at=timezone.now())
    return list(Run.objects.filter(push=push).select_related("repository__owner").order_by("workflow_path", "id"))


def is_planned(push_id: int) -> bool:
    return Push.objects.filter(pk=push_id, planned_at__isnull=False).exists()


def _plan(push: Push) -> None:
    if push.by_job:  # or a workflow could start itself for ever
        return
    if push.deleted:
        _plan_deletion(push)
        return
    repository = push.repository
    sha = bare.resolve(repository, push.after)
    if sha is None:  # a tag of a tree or blob, or a commit that a later push removed and git collected
        return
    loaded = workflow_files.load_all(repository, sha)
    if push.ref == f"refs/heads/{repository.default_branch}":
        workflow_files.remember_default_branch(repository.pk, known={sha: loaded})
    commits = _new_commits(push, sha)
    if not commits:
        return
    head = commits[0]
    if not commit.skips_ci(f"{head.subject}\n\n{head.body}"):
        payload = webhook_payloads.push(push, commits)
        cause = _cause(push, "push", payload, ref=push.ref, sha=sha, title=head.subject or sha[:7])
        fire(Trigger(cause=cause, changed_paths=_changed_paths(push), tell_problems=True), loaded)
    if push.created:  # which no message skips: GitHub docs, "Skipping workflow runs"
        payload = webhook_payloads.create(push)
        fire(Trigger(cause=_cause(push, "create", payload, ref=push.ref, sha=sha, title=head.subject)), loaded)


def _plan_deletion(push: Push) -> None:
    """`delete` is answered by the workflows of the default branch: the ref's own are gone. Source: GitHub docs."""
    repository = push.repository
    ref = f"refs/heads/{repository.default_branch}"
    sha = bare.resolve(repository, ref)
    if sha is not None:
        loaded = workflow_files.load_all(repository, sha)
        fire(Trigger(cause=_cause(push, "delete", webhook_payloads.delete(push), ref=ref, sha=sha)), loaded)


def _cause(push: Push, event: str, payload: dict[str, Any], *, ref: str, sha: str, title: str = "") -> Cause:
    return Cause(
        repository=push.repository,
        event=event,
        payload=payload,
        ref=ref,
        sha=sha,
        title=title,
        actor=push.pusher,
        trusted=True,  # only somebody with write access can push
        push=push,
    )


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
    notices = [
        f"  {_where(asdict(notice))}: {notice.message}"
        for notice in workflow_files.notices(run.repository, run.sha, run.workflow_path)
    ]
    return [f"Workflow {run.workflow_name} #{run.number} started: {url}", *notices]


def _where(problem: dict[str, Any]) -> str:
    place = f":{problem['line']}:{problem['column']}" if problem["line"] else ""
    return f"{problem['path']}{place}"

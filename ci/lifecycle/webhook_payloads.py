"""What does the `github.event` of each event hold? The fields of GitHub's webhook payloads that this forge knows.

Source of the shapes: GitHub docs, "Webhook events and payloads".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from ci.models import Run
from ci.workflow.inputs import payload as texts_of
from forge.git import bare
from forge.models import Push, Repository

MAX_COMMITS = 20


def push(push: Push, commits: Sequence[bare.Commit]) -> dict[str, Any]:
    """Of a push, with its newest commits, oldest first as GitHub has them."""
    repository = push.repository
    described = [_commit(repository, commit) for commit in reversed(commits)]
    url = f"{settings.SERVER_URL}{repository.get_absolute_url()}"
    return {
        "ref": push.ref,
        "before": push.before,
        "after": push.after,
        "base_ref": None,
        "created": push.created,
        "deleted": push.deleted,
        "forced": push.forced,
        "compare": f"{url}commit/{push.after}/",
        "commits": described,
        "head_commit": described[-1] if described else None,
        "pusher": {"name": push.pusher_name, "email": ""},
        **_common(repository, push.pusher),
    }


def create(push: Push) -> dict[str, Any]:
    """Of a branch or tag that a push made."""
    return {**_ref(push), "master_branch": push.repository.default_branch, "description": push.repository.description}


def delete(push: Push) -> dict[str, Any]:
    """Of a branch or tag that a push removed."""
    return _ref(push)


def _ref(push: Push) -> dict[str, Any]:
    kind = "tag" if push.ref.startswith("refs/tags/") else "branch"
    name = push.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
    return {"ref": name, "ref_type": kind, "pusher_type": "user", **_common(push.repository, push.pusher)}


def repository_dispatch(
    repository: Repository, *, event_type: str, client_payload: Mapping[str, Any], actor: Any
) -> dict[str, Any]:
    return {
        "action": event_type,
        "branch": repository.default_branch,
        "client_payload": dict(client_payload),
        **_common(repository, actor),
    }


def workflow_run(run: Run, *, action: str) -> dict[str, Any]:
    """Of another run's move: `action` is requested, in_progress or completed."""
    status = {"requested": "queued", "in_progress": "in_progress", "completed": "completed"}[action]
    described = {
        "id": run.pk,
        "name": run.workflow_name,
        "display_title": run.title,
        "path": run.workflow_path,
        "event": run.event,
        "status": status,
        "conclusion": run.conclusion if action == "completed" else None,
        "head_branch": run.ref_name,
        "head_sha": run.sha,
        "run_number": run.number,
        "run_attempt": run.attempt,
        "actor": {"login": run.actor_name},
        "triggering_actor": {"login": run.triggered_by_name},
        "created_at": _time(run.created_at),
        "html_url": f"{settings.SERVER_URL}{run.get_absolute_url()}",
        "head_repository": {"full_name": str(run.repository)},
        "pull_requests": [],
    }
    workflow = {"id": run.workflow_id, "name": run.workflow_name, "path": run.workflow_path, "state": "active"}
    return {
        "action": action,
        "workflow_run": described,
        "workflow": workflow,
        **_common(run.repository, run.actor),
    }


def workflow_dispatch(
    repository: Repository, *, path: str, ref: str, inputs: Mapping[str, Any], actor: Any
) -> dict[str, Any]:
    """Of a manual run. Here booleans and numbers are texts; the `inputs` context has them typed."""
    return {"inputs": texts_of(inputs), "ref": ref, "workflow": path, **_common(repository, actor)}


def schedule(repository: Repository, *, cron: str, path: str) -> dict[str, Any]:
    return {"schedule": cron, "workflow": path, **_common(repository, None)}


def _common(repository: Repository, sender: Any) -> dict[str, Any]:
    return {"repository": _repository(repository), "sender": _user(sender)}


def _repository(repository: Repository) -> dict[str, Any]:
    url = f"{settings.SERVER_URL}{repository.get_absolute_url()}"
    return {
        "id": repository.pk,
        "name": repository.name,
        "full_name": str(repository),
        "private": repository.private,
        "owner": _user(repository.owner),
        "html_url": url.rstrip("/"),
        "description": repository.description or None,
        "fork": False,
        "clone_url": repository.clone_url,
        "default_branch": repository.default_branch,
        "visibility": "private" if repository.private else "public",
    }


def _user(user: Any) -> dict[str, Any]:
    if user is None:
        return {}
    return {"login": user.get_username(), "id": user.pk, "type": "User", "site_admin": bool(user.is_superuser)}


def _commit(repository: Repository, commit: bare.Commit) -> dict[str, Any]:
    message = f"{commit.subject}\n\n{commit.body}" if commit.body else commit.subject
    return {
        "id": commit.sha,
        "message": message,
        "timestamp": _time(commit.committed_at),
        "url": f"{settings.SERVER_URL}{repository.get_absolute_url()}commit/{commit.sha}/",
        "author": {"name": commit.author_name, "email": commit.author_email},
        "committer": {"name": commit.committer_name, "email": commit.committer_email},
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None

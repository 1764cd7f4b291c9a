"""What does the `github.event` of each event hold? The fields of GitHub's webhook payloads that this forge knows.

Source of the shapes: GitHub docs, "Webhook events and payloads".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

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

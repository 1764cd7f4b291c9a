"""Who looks at which repository? Real repositories, filled by the real git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from forge.models import Member, Repository
from forge.repositories import create_repository

GIT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Alice & Co",
    "GIT_AUTHOR_EMAIL": "alice@example.org",
    "GIT_COMMITTER_NAME": "Alice",
    "GIT_COMMITTER_EMAIL": "alice@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}


class Worktree:
    """A clone in which tests commit, and from which they push straight into the bare repository."""

    def __init__(self, folder: Path, repository: Repository) -> None:
        self.folder, self.repository = folder, repository
        self.git("init", "-q", "-b", repository.default_branch, str(folder), cwd=folder.parent)

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd or self.folder, env=GIT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str | bytes, str | bytes], message: str = "Change files") -> str:
        for name, content in files.items():
            path = os.path.join(os.fsencode(self.folder), os.fsencode(name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", message)
        return self.git("rev-parse", "HEAD")

    def push(self, *refspecs: str) -> None:
        self.git("push", "-q", "-f", str(self.repository.path), *(refspecs or ["HEAD"]))


@pytest.fixture(autouse=True)
def _own_address(settings) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    # Whose runs a commit has is asked of CI; the forge's own pages are tested without it.
    settings.COMMIT_STATES = ""


def _account(name: str) -> User:
    return User.objects.create_user(name)


@pytest.fixture
def alice(db) -> User:
    """Owns the repository."""
    return _account("alice")


@pytest.fixture
def repository(alice, tmp_path, settings) -> Repository:
    """Private; bob may write, carol may read, dave may administer, mallory is a stranger."""
    settings.DATA_DIR = tmp_path / "data"
    made = create_repository(owner=alice, name="demo", description="Shows <things>")
    roles = {"bob": Member.Role.WRITE, "carol": Member.Role.READ, "dave": Member.Role.ADMIN}
    for name, role in roles.items():
        Member.objects.create(repository=made, user=_account(name), role=role)
    _account("mallory")
    return made


@pytest.fixture
def worktree(repository, tmp_path) -> Worktree:
    return Worktree(tmp_path / "work", repository)


@pytest.fixture
def signed_in() -> Callable[[str], Client]:
    """`signed_in("bob")`: a browser in which bob is signed in; "" is nobody. It checks CSRF like a real one."""

    def sign_in(name: str) -> Client:
        client = Client()
        if name:
            client.force_login(User.objects.get(username=name), "django.contrib.auth.backends.ModelBackend")
        return client

    return sign_in

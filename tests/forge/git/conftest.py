"""What do the tests of git stand on? People, a repository, and a work tree that pushes to its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from forge.models import Repository
from forge.repositories import create_repository
from tests.forge.git.worktree import WorkTree


@pytest.fixture
def alice(db):
    return get_user_model().objects.create_user("alice")


@pytest.fixture
def repository(alice) -> Repository:
    return create_repository(owner=alice, name="widget")


@pytest.fixture
def work(tmp_path: Path) -> WorkTree:
    return WorkTree(tmp_path / "work").start()


@pytest.fixture
def filled(repository, work):
    """The repository with one commit on main, pushed straight into its folder."""
    work.commit({"README.md": "# Widget\n", "src/a.py": "print(1)\n"}, "First")
    work.git("push", "-q", str(repository.path), "main")
    return repository

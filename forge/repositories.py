"""How does a repository come to be, change its name or branch, and go? Row and folder together."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django_q.tasks import async_task

from forge.git import bare
from forge.git.durable import flush, flush_tree
from forge.git.names import is_branch_name
from forge.git.program import run
from forge.models import Repository

# The first part of an address of this site, or what browsers take out of one: what an owner of such a name had could
# not be reached.
RESERVED_OWNERS = frozenset(
    [
        *(".", "..", "favicon.ico"),
        *("admin", "api", "static", "login", "logout", "new", "settings", "runners"),
        *("accounts", "media", "actions", "health", "metrics", "twirp", "_blobs"),
    ]
)


def create_repository(
    *,
    owner: User,
    name: str,
    private: bool = True,
    description: str = "",
    default_branch: str = "main",
) -> Repository:
    """Make an empty repository: its row, and its bare folder on disk.

    Raises ValidationError, by field, when the name or the branch cannot be used or the name is taken.
    """
    _check_branch(default_branch)
    if owner.get_username().lower() in RESERVED_OWNERS:
        raise ValidationError(
            {"name": f"{owner.get_username()} cannot own repositories: that name is an address of this site."}
        )
    repository = Repository(
        owner=owner, name=name, private=private, description=description, default_branch=default_branch
    )
    repository.full_clean(validate_constraints=False)
    try:
        with transaction.atomic():
            repository.save(force_insert=True)
            _make_folder(repository)
    except IntegrityError as error:
        _remove_folder(repository)
        raise _taken(owner, name) from error
    except BaseException:
        _remove_folder(repository)
        raise
    return repository


def rename_repository(*, repository: Repository, name: str) -> None:
    """Give a repository another name. Its folder is named by id and stays.

    Raises ValidationError, by field, as `create_repository`.
    """
    previous, repository.name = repository.name, name
    try:
        repository.full_clean(validate_constraints=False)
        with transaction.atomic():
            repository.save(update_fields=["name"])
    except IntegrityError as error:
        repository.name = previous
        raise _taken(repository.owner, name) from error
    except ValidationError:
        repository.name = previous
        raise


def set_default_branch(*, repository: Repository, branch: str) -> None:
    """Make `branch` the one that clones check out and that schedules run from.

    Raises ValidationError when it is no branch of the repository (an empty repository takes any branch name).
    """
    _check_branch(branch)
    if not bare.is_empty(repository) and bare.ref_sha(repository, f"refs/heads/{branch}") is None:
        raise ValidationError({"default_branch": f"There is no branch {branch}. Push it first."})
    with transaction.atomic():
        Repository.objects.filter(pk=repository.pk).update(default_branch=branch)
        point_head(repository, branch)
        async_task(settings.DEFAULT_BRANCH_TASK, repository.pk)
    repository.default_branch = branch


def delete_repository(*, repository: Repository) -> None:
    """Delete a repository with all that belongs to it. A push that is under way fails."""
    folder = repository.path
    with transaction.atomic():
        # Before all that hangs on it: who works under this lock is through first, and finds none of it after.
        Repository.objects.select_for_update(no_key=True).filter(pk=repository.pk).first()
        repository.delete()
    # Only now: a folder without a row is garbage, a row without a folder is a broken repository.
    _discard(folder)


def point_head(repository: Repository, branch: str) -> None:
    """Make git's own idea of the default branch the same as the row's."""
    run(repository.path, ["symbolic-ref", "HEAD", f"refs/heads/{branch}"])


def _make_folder(repository: Repository) -> None:
    folder = repository.path
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder.with_name(f"new-{uuid.uuid4().hex}")
    try:
        run(draft, ["init", "--quiet", "--bare", f"--initial-branch={repository.default_branch}"])
        flush_tree(draft)
        # Ids are never used twice, so what lies here is left from a creation that was killed before its commit.
        _discard(folder)
        os.rename(draft, folder)
        flush(folder.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _remove_folder(repository: Repository) -> None:
    if repository.pk is not None:
        _discard(repository.path)


def _discard(folder: Path) -> None:
    # Renamed first: nobody meets a half-deleted repository.
    trash = Path(settings.DATA_DIR) / "git" / f"deleted-{uuid.uuid4().hex}"
    try:
        os.rename(folder, trash)
    except FileNotFoundError:
        return
    shutil.rmtree(trash, ignore_errors=True)


def _check_branch(branch: str) -> None:
    if not is_branch_name(branch):
        raise ValidationError({"default_branch": f"{branch!r} cannot name a branch (see git help check-ref-format)."})


def _taken(owner: User, name: str) -> ValidationError:
    return ValidationError({"name": f"{owner.get_username()} already has a repository named {name}."})

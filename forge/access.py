"""Who may do what with a repository? The one place that answers, for pages, APIs and git alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from forge.models import Member, Repository


@dataclass(frozen=True)
class JobActor:
    """A running job, proven by its job token: it may read and write its own repository as far as it was granted."""

    repository_id: int
    job_id: int
    may_read: bool = True
    may_write: bool = False
    name: str = "job"
    pk: None = None
    is_authenticated: bool = True


Actor = AbstractBaseUser | AnonymousUser | JobActor


def can_read(actor: Actor, repository: Repository) -> bool:
    if not repository.private:
        return True
    if isinstance(actor, JobActor):
        return actor.repository_id == repository.pk and actor.may_read
    return _has_role(actor, repository, Member.Role.READ, Member.Role.WRITE, Member.Role.ADMIN)


def can_write(actor: Actor, repository: Repository) -> bool:
    if isinstance(actor, JobActor):
        return actor.repository_id == repository.pk and actor.may_write
    return _has_role(actor, repository, Member.Role.WRITE, Member.Role.ADMIN)


def can_administer(actor: Actor, repository: Repository) -> bool:
    if isinstance(actor, JobActor):
        return False
    return _has_role(actor, repository, Member.Role.ADMIN)


def can_operate(actor: object) -> bool:
    """Whether the whole instance is theirs: what serves it, its metrics, programs that run as the server's user."""
    return bool(getattr(actor, "is_active", False) and getattr(actor, "is_superuser", False))


def readable_repositories(actor: Actor) -> QuerySet[Repository]:
    """The repositories for which `can_read` is true, as one query."""
    repositories = Repository.objects.select_related("owner")
    if isinstance(actor, JobActor):
        own = Q(pk=actor.repository_id) if actor.may_read else Q()
        return repositories.filter(Q(private=False) | own)
    if not _is_active(actor):
        return repositories.filter(private=False)
    if can_operate(actor):
        return repositories
    return repositories.filter(Q(private=False) | Q(owner=actor.pk) | Q(members__user=actor.pk)).distinct()


def _has_role(actor: AbstractBaseUser | AnonymousUser, repository: Repository, *roles: str) -> bool:
    if not _is_active(actor):
        return False
    if can_operate(actor) or repository.owner_id == actor.pk:
        return True
    return Member.objects.filter(repository=repository, user_id=actor.pk, role__in=roles).exists()


def _is_active(actor: AbstractBaseUser | AnonymousUser) -> TypeGuard[AbstractBaseUser]:
    return actor.is_authenticated and actor.is_active

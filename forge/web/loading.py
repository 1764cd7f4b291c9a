"""May this person see what this address names? Loads and authorises in one step, for every page of a repository."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from forge.access import Actor, can_read
from forge.models import Repository

Need = Callable[[Actor, Repository], bool]


def get_repository(request: HttpRequest, owner: str, name: str, *, need: Need = can_read) -> Repository:
    """
    The repository `owner/name` (case does not matter, as on GitHub), its owner loaded with it.

    `need` is one of forge.access' questions. Raises Http404 where it does not exist and, with the same message, where
    `request.user` may not even read it; PermissionDenied where they read it but lack the role.
    """
    repository = (
        Repository.objects.select_related("owner")
        .filter(owner__username__iexact=owner, name__iexact=name.removesuffix(".git"))
        .first()
        if "\0" not in owner + name
        else None
    )
    if repository is None or not can_read(request.user, repository):
        raise Http404("There is no such repository, or it is private and you are not a member.")
    if need is not can_read and not need(request.user, repository):
        raise PermissionDenied("Your role in this repository does not allow this. Ask its owner for a higher one.")
    return repository


def signed_in(request: HttpRequest) -> User:
    """The user behind a view that requires signing in."""
    return cast(User, request.user)

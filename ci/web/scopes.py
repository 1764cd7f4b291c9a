"""Whose runners, secrets and variables does a page show, and may this person change them?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from ci.models import Environment, Scope
from ci.web.pages import MAX_ID, around
from forge.access import can_administer, can_operate
from forge.web.loading import get_repository


@dataclass(frozen=True)
class Place:
    """A scope and how its pages look: which page around it, and where its forms lead."""

    scope: Scope
    kind: str  # "repository", "environment", "owner" or "instance"
    base: str
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, Any]:
        """The filter for runners and registration tokens of exactly this scope."""
        return {"owner": self.scope.owner, "repository": self.scope.repository}

    @property
    def value_rows(self) -> dict[str, Any]:
        """The filter for secrets and variables of exactly this scope: those of an environment have a repository too."""
        return {**self.rows, "environment": self.scope.environment}


def of_repository(request: HttpRequest, owner: str, name: str) -> Place:
    """Raises Http404 for strangers, PermissionDenied for people who may not administer it."""
    repository = get_repository(request, owner, name, need=can_administer)
    return Place(Scope(repository=repository), "repository", "ci/settings_base.html", around(repository))


def of_environment(request: HttpRequest, owner: str, name: str, environment_id: int) -> Place:
    """Raises Http404 for strangers and where there is none such, PermissionDenied for who may not administer it."""
    repository = get_repository(request, owner, name, need=can_administer)
    environment = (
        Environment.objects.filter(repository=repository, pk=environment_id).first()
        if environment_id <= MAX_ID
        else None
    )
    if environment is None:
        raise Http404("There is no such environment in this repository; it may have been deleted.")
    environment.repository = repository
    scope = Scope(repository=repository, environment=environment)
    return Place(scope, "environment", "ci/environment_base.html", around(repository, environment=environment))


def of_person(request: HttpRequest) -> Place:
    """What the signed-in person owns: it serves all of their repositories."""
    return Place(Scope(owner=request.user), "owner", "ci/account_base.html")


def of_instance(request: HttpRequest) -> Place:
    """Raises PermissionDenied for everybody but superusers."""
    if not can_operate(request.user):
        raise PermissionDenied("Only an operator may see what serves the whole instance.")
    return Place(Scope(), "instance", "ci/instance_base.html")

"""What may this person reach through the owners' API? Loads and authorises in one step, for all of its views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.throttling import AnonRateThrottle
from rest_framework.views import APIView

from ci.api.documentation import OwnersSchema
from ci.api.pagination import Pages
from ci.api.uncached import UncachedView
from ci.models import Environment, Scope
from forge.access import Actor, can_administer, can_operate, can_read, readable_repositories
from forge.models import Repository

Need = Callable[[Actor, Repository], bool]

_NO_REPOSITORY = "There is no such repository, or it is private and you are not a member."
_NO_ROLE = "Your role in this repository does not allow this. Ask its owner for a higher one."
_SIGN_IN = "Send `Authorization: Bearer …` with a personal access token (frp_…)."


class AnonymousThrottle(AnonRateThrottle):
    scope = "anonymous"


class SignedIn(BasePermission):
    """A token or a session."""

    message = _SIGN_IN

    def has_permission(self, request: Request, view: APIView) -> bool:
        return bool(request.user and request.user.is_authenticated)


class SignedInToWrite(SignedIn):
    def has_permission(self, request: Request, view: APIView) -> bool:
        return request.method in SAFE_METHODS or super().has_permission(request, view)


class OwnersView(UncachedView):
    """Reading public things takes no account; all else takes one, and a role."""

    permission_classes = [SignedInToWrite]
    throttle_classes = [AnonymousThrottle]
    schema = OwnersSchema()

    @property
    def person(self) -> Any:
        """The caller, who is signed in wherever this is asked."""
        return self.request.user

    def repository(self, *, need: Need = can_read) -> Repository:
        """The repository that the address names.

        Raises Http404 for those who may not read it, PermissionDenied or NotAuthenticated for those who may not more.
        """
        owner, name = self.kwargs["owner"], self.kwargs["repository"]
        repository: Repository | None = (
            readable_repositories(self.request.user).filter(owner__username__iexact=owner, name__iexact=name).first()
        )
        if repository is None:
            raise Http404(_NO_REPOSITORY)
        if need is not can_read and not need(self.request.user, repository):
            raise PermissionDenied(_NO_ROLE) if self.request.user.is_authenticated else NotAuthenticated(_SIGN_IN)
        return repository

    def page(self, rows: Any, shape: type[Serializer[Any]]) -> Any:
        """The Response with the page of `rows` that the address asks for."""
        pages = Pages()
        found: Any = pages.paginate_queryset(rows, self.request, view=self)
        return pages.get_paginated_response(shape(found, many=True, context={"request": self.request}).data)

    def given(self, shape: type[Serializer[Any]], *, partial: bool = False) -> dict[str, Any]:
        """The body, checked against `shape`. Raises ValidationError."""
        serializer = shape(data=self.request.data, partial=partial)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data


class ScopedView(OwnersView):
    """Runners, tokens, secrets and variables of whatever the route's `scope` names: a repository, a person …"""

    permission_classes = [SignedIn]

    def scope(self) -> Scope:
        """Raises Http404, PermissionDenied."""
        if self.kwargs["scope"] == "repository":
            return Scope(repository=self.repository(need=can_administer))
        if self.kwargs["scope"] == "environment":
            environment = self.environment()
            return Scope(repository=environment.repository, environment=environment)
        if self.kwargs["scope"] == "user":
            return Scope(owner=self.request.user)
        if not can_operate(self.request.user):
            raise PermissionDenied("Only an operator may see what serves the whole instance.")
        return Scope()

    def environment(self) -> Environment:
        """The environment that the address names; names compare without case. Raises Http404, PermissionDenied."""
        repository = self.repository(need=can_administer)
        name = self.kwargs["environment"]
        found = Environment.objects.filter(repository=repository, name__iexact=name).first()
        if found is None:
            raise Http404(f"{repository} has no environment {name}.")
        found.repository = repository
        return found

    def rows(self) -> dict[str, Any]:
        """The filter for runners and registration tokens of exactly this scope."""
        scope = self.scope()
        return {"owner": scope.owner, "repository": scope.repository}

    def value_rows(self) -> dict[str, Any]:
        """The filter for secrets and variables of exactly this scope: an environment's have its repository too."""
        scope = self.scope()
        return {"owner": scope.owner, "repository": scope.repository, "environment": scope.environment}

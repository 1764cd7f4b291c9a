"""Who calls? A person with a personal access token, or a runner with one of its three kinds of token."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from ci.api.errors import CHALLENGE
from ci.lifecycle import tokens
from ci.lifecycle.errors import Unauthenticated
from ci.models import Runner
from forge.access import JobActor
from forge.access_tokens import user_of_access_token
from forge.tokens import PREFIXES

_HEADER = re.compile(r"(?P<scheme>\S+) +(?P<token>[A-Za-z0-9_-]{1,200})")
# Clients of GitHub send `token`.
_PERSONAL = frozenset({"bearer", "token"})
_MISSING = "Send `Authorization: Bearer …` with a {} token."


def token_in(header: str | None, *, schemes: frozenset[str] = frozenset({"bearer"})) -> str | None:
    """The token of an Authorization header; None when it has another scheme or is no token at all."""
    found = _HEADER.fullmatch((header or "").strip())
    if found is None or found["scheme"].lower() not in schemes:
        return None
    return found["token"]


def registration_token(header: str | None) -> str:
    """The token, checked. Raises Unauthenticated."""
    token = token_in(header)
    if token is None:
        raise Unauthenticated(_MISSING.format("registration"))
    tokens.registration_token_of(token)
    return token


def runner(header: str | None) -> Runner:
    """Raises Unauthenticated."""
    token = token_in(header)
    if token is None:
        raise Unauthenticated(_MISSING.format("runner"))
    return tokens.runner_of(token)


def job_token(header: str | None) -> str:
    """What looks like a job's token, not yet looked up. Raises Unauthenticated."""
    token = token_in(header)
    if token is None:
        raise Unauthenticated(_MISSING.format("job"))
    if not token.startswith(PREFIXES["job"]):
        raise Unauthenticated()
    return token


def job(header: str | None, *, job_id: int) -> str:
    """The token, which is the job's. Raises Unauthenticated, NotFound."""
    token = job_token(header)
    tokens.check_job_token(job_id, token)
    return token


def proof(request: Request) -> Any:
    """What the authentication class of the view found: a Runner, or the text of a token."""
    return request.auth


class _BearerAuthentication(BaseAuthentication):
    """`request.auth` is what the token stands for; there is no person behind it, so `request.user` stays anonymous."""

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


class RegistrationAuthentication(_BearerAuthentication):
    """`request.auth`: the registration token's plaintext, which the lifecycle checks again as it uses it."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, str]:
        return AnonymousUser(), registration_token(request.META.get("HTTP_AUTHORIZATION"))


class RunnerAuthentication(_BearerAuthentication):
    """`request.auth`: the Runner."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Runner]:
        return AnonymousUser(), runner(request.META.get("HTTP_AUTHORIZATION"))


class JobAuthentication(_BearerAuthentication):
    """`request.auth`: the job token's plaintext. Checked before the body is read, and under the lock once more."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, str]:
        job_id = request.parser_context["kwargs"]["job_id"]
        return AnonymousUser(), job(request.META.get("HTTP_AUTHORIZATION"), job_id=job_id)


class IdTokenRequestAuthentication(_BearerAuthentication):
    """`request.auth`: the text of what should be a job's request token, which the lifecycle checks."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, str]:
        token = token_in(request.META.get("HTTP_AUTHORIZATION"))
        if token is None:
            raise Unauthenticated("Send `Authorization: Bearer …` with ACTIONS_ID_TOKEN_REQUEST_TOKEN.")
        return AnonymousUser(), token


class JobActorAuthentication(_BearerAuthentication):
    """A running job by its own token (GITHUB_TOKEN), as far as its `actions` permission goes: for what GitHub's clients
    ask its REST API. `request.user` is a JobActor."""

    permission = "actions"

    def authenticate(self, request: Request) -> tuple[JobActor, str] | None:
        token = token_in(request.META.get("HTTP_AUTHORIZATION"), schemes=_PERSONAL)
        if token is None or not token.startswith(PREFIXES["job"]):
            return None
        actor = tokens.actor_of_job_token(token, permission=self.permission)
        if actor is None:
            raise Unauthenticated("This is not the token of a job that runs: it is unknown, or its job has ended.")
        return actor, "job token"


class JobMetadataAuthentication(JobActorAuthentication):
    """A running job by its own token, to see what a repository is."""

    permission = "metadata"


class AccessTokenAuthentication(_BearerAuthentication):
    """A person's token, `frp_…`, as `Bearer` or, as clients of GitHub send it, as `token`."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, str] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header.strip():
            return None
        token = token_in(header, schemes=_PERSONAL)
        user = user_of_access_token(token) if token is not None else None
        if user is None:
            raise Unauthenticated("This is not a personal access token in use (frp_…): it is unknown or has expired.")
        return user, "access token"

"""Who is calling over git? Basic credentials: a password, an access token, or a token that another app knows."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping

from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_client_ip_address
from django.conf import settings
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.utils.module_loading import import_string

from forge.access import Actor
from forge.access_tokens import user_of_access_token
from forge.tokens import PREFIXES

_MAX_HEADER = 8192  # characters
_MAX_USERNAME = 150
_MAX_PASSWORD = 4096


class WrongCredentials(Exception):
    """The credentials prove nobody; which part is wrong is not said."""


class TooManyAttempts(Exception):
    """Too many wrong passwords for this name from this address; the message says how long to wait."""


def actor_of(*, authorization: str | None, address: str, headers: Mapping[str, str]) -> Actor:
    """Who sent this Authorization header; AnonymousUser without one. Reads the database: call it in a thread.

    `address` is the peer's, `headers` (lower-case names) are looked at for a proxy's X-Forwarded-For, as settings say.
    Raises WrongCredentials and TooManyAttempts.
    """
    if not authorization:
        return AnonymousUser()
    username, password = _credentials(authorization)
    # Clients that know one field only put the token into the name.
    for token in (password, username if password in ("", "x-oauth-basic") else ""):
        if _is_token(token):
            return _token_actor(token)
    return _user_with_password(username, password, _request(address, headers))


def _credentials(authorization: str) -> tuple[str, str]:
    scheme, _, value = authorization.partition(" ")
    if len(authorization) > _MAX_HEADER:
        raise WrongCredentials
    if scheme.lower() == "bearer" and _is_token(value.strip()):
        return "", value.strip()
    if scheme.lower() != "basic":
        raise WrongCredentials
    try:
        username, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise WrongCredentials from None
    if not colon or "\0" in username or len(username) > _MAX_USERNAME + _MAX_PASSWORD or len(password) > _MAX_PASSWORD:
        raise WrongCredentials
    return username, password


def _is_token(text: str) -> bool:
    return text.startswith((PREFIXES["access"], *settings.GIT_TOKEN_ACTORS))


def _token_actor(token: str) -> Actor:
    # No throttle: nobody guesses 256 bits, and one runner with an old token must not lock out its neighbours.
    actor: Actor | None
    if token.startswith(PREFIXES["access"]):
        actor = user_of_access_token(token)
    else:
        dotted = next(path for prefix, path in settings.GIT_TOKEN_ACTORS.items() if token.startswith(prefix))
        actor = import_string(dotted)(token)
    if actor is None:
        raise WrongCredentials
    return actor


def _user_with_password(username: str, password: str, request: HttpRequest) -> User:
    user = get_user_model().objects.filter(username=username, is_active=True).first()
    if user is not None and _verified.holds(user, password):
        return user
    found = authenticate(request, username=username, password=password)
    if found is None:
        if getattr(request, "axes_locked_out", False):
            raise TooManyAttempts(
                f"Too many wrong passwords: wait {settings.AXES_COOLOFF_TIME.total_seconds() / 60:g} minutes, "
                "or use an access token."
            )
        raise WrongCredentials
    # What a login does by its signal, without writing a login for every fetch.
    AxesProxyHandler.reset_attempts(username=username, ip_address=get_client_ip_address(request))
    _verified.remember(found, password)
    return found


def _request(address: str, headers: Mapping[str, str]) -> HttpRequest:
    """What the throttle wants to know of a request."""
    request = HttpRequest()
    request.method = "GET"
    request.path = request.path_info = "/git"
    request.META["REMOTE_ADDR"] = address
    for name in ("x-forwarded-for", "user-agent", "accept"):
        if name in headers:
            request.META["HTTP_" + name.upper().replace("-", "_")] = headers[name]
    return request


class _VerifiedPasswords:
    """Passwords found right a moment ago. A clone asks three times, and hashing is slow on purpose.

    An entry covers the stored hash too, so that a changed password is forgotten at once; no password can be read
    from it without this process's key.
    """

    _LIFETIME = 300.0  # seconds
    _MOST = 1000

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._until: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()

    def holds(self, user: User, password: str) -> bool:
        with self._lock:
            return self._until.get(self._entry(user, password), 0) > time.monotonic()

    def remember(self, user: User, password: str) -> None:
        with self._lock:
            self._until[self._entry(user, password)] = time.monotonic() + self._LIFETIME
            while len(self._until) > self._MOST:
                self._until.popitem(last=False)

    def _entry(self, user: User, password: str) -> bytes:
        text = f"{user.pk}\0{user.password}\0{password}"
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


_verified = _VerifiedPasswords()

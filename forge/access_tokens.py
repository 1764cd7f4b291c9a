"""How does a person get a token for git and the API, and how is it taken back?"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils import timezone

from forge.models import AccessToken
from forge.tokens import PREFIXES, hash_token, new_token

MAX_TOKENS = 100  # a person
_HINT = 8  # characters, of them four random ones
_USED_EVERY = timedelta(minutes=1)


def create_access_token(*, user: User, name: str, expires_at: datetime | None = None) -> tuple[AccessToken, str]:
    """A new token of `user` and its plaintext, which is not kept: show it once.

    Raises ValidationError, by field.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError({"expires_at": "This time has passed. Choose a later one."})
    if AccessToken.objects.filter(user=user.pk).count() >= MAX_TOKENS:
        raise ValidationError(f"You have {MAX_TOKENS} tokens, which is the limit. Revoke one first.")
    plaintext = new_token("access")
    token = AccessToken(
        user=user, name=name.strip(), expires_at=expires_at, token_hash=hash_token(plaintext), hint=plaintext[:_HINT]
    )
    token.full_clean()
    token.save(force_insert=True)
    return token, plaintext


def revoke_access_token(*, user: User, token_id: int) -> bool:
    """Revoke one of the user's own tokens at once; False when it is not there (any more)."""
    return AccessToken.objects.filter(user=user.pk, pk=token_id).delete()[0] > 0


def user_of_access_token(plaintext: str) -> User | None:
    """Whose token this is; None when it is unknown, revoked, expired or its person is deactivated."""
    if not plaintext.startswith(PREFIXES["access"]):
        return None
    now = timezone.now()
    found = (
        AccessToken.objects.select_related("user")
        .filter(Q(expires_at=None) | Q(expires_at__gt=now), token_hash=hash_token(plaintext), user__is_active=True)
        .first()
    )
    if found is None:
        return None
    if found.last_used_at is None or now - found.last_used_at > _USED_EVERY:
        AccessToken.objects.filter(pk=found.pk).update(last_used_at=now)
    return found.user

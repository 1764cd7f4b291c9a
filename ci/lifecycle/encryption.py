"""How are secrets kept at rest? As Fernet text under keys from the environment."""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class SecretUnreadable(Exception):
    """A secret was encrypted with a key that is no longer configured."""


@cache
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def _keys() -> tuple[str, ...]:
    if settings.SECRETS_KEYS:
        return tuple(settings.SECRETS_KEYS)
    derived = hashlib.sha256(b"forge-ci secrets at rest\0" + settings.SECRET_KEY.encode()).digest()
    return (base64.urlsafe_b64encode(derived).decode(),)


def encrypt(value: str) -> str:
    return _fernet(_keys()).encrypt(value.encode()).decode()


def decrypt(encrypted: str) -> str:
    """Raises SecretUnreadable when no configured key fits."""
    try:
        return _fernet(_keys()).decrypt(encrypted.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable(
            "A secret was encrypted with a key that is not in FORGE_SECRETS_KEYS: add that key, or set the secret anew."
        ) from None


def rotate(encrypted: str) -> str:
    """The same secret under the newest key. Raises SecretUnreadable."""
    try:
        return _fernet(_keys()).rotate(encrypted.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable("A secret was encrypted with a key that is not in FORGE_SECRETS_KEYS.") from None

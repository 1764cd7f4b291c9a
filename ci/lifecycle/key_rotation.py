"""How does everything that is kept under keys come under new ones? All at once, or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from ci.lifecycle import signing_keys
from ci.lifecycle.settings_values import rotate_secrets


@dataclass(frozen=True)
class Rotated:
    secrets: int
    signing_key: bool


@transaction.atomic
def rotate_keys() -> Rotated:
    """Secrets under the newest key of FORGE_SECRETS_KEYS, and a new key to sign id tokens with where there is one.

    The signing key is made anew and not only encrypted anew: whoever knew the old encryption key may know it.
    Raises SecretUnreadable, and changes nothing.
    """
    return Rotated(rotate_secrets(), signing_keys.replace())

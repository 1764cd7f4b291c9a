"""`manage.py rotate_keys`: encrypts every secret anew under the newest key, and signs id tokens with a new one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ci.lifecycle.encryption import SecretUnreadable
from ci.lifecycle.key_rotation import rotate_keys


class Command(BaseCommand):
    help = (
        "Encrypt every secret anew under the first key of FORGE_SECRETS_KEYS, after which older keys may be dropped; "
        "replace the key that signs id tokens."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            rotated = rotate_keys()
        except SecretUnreadable as error:
            raise CommandError(f"Nothing was changed. {error}") from None
        self.stdout.write(f"{rotated.secrets} secrets are under the newest key.")
        if rotated.signing_key:
            self.stdout.write("Id tokens are signed with a new key; those signed before stay valid until they expire.")

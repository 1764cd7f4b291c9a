"""`manage.py rotate_keys`: encrypts every secret anew under the newest key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ci.lifecycle.encryption import SecretUnreadable
from ci.lifecycle.settings_values import rotate_secrets


class Command(BaseCommand):
    help = "Encrypt every secret anew under the first key of FORGE_SECRETS_KEYS. Afterwards older keys may be dropped."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = rotate_secrets()
        except SecretUnreadable as error:
            raise CommandError(f"Nothing was changed. {error}") from None
        self.stdout.write(f"{count} secrets are under the newest key.")

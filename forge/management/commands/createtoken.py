"""How does an operator make an access token for a person?"""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from forge.access_tokens import create_access_token
from forge.management.arguments import person, sentence

_MOST_DAYS = 3650


class Command(BaseCommand):
    help = "Create a personal access token and print it, this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", metavar="USER")
        parser.add_argument("name", metavar="NAME", help="what it is for")
        parser.add_argument("--days", type=int, metavar="N", help="days until it expires; without it, never")

    def handle(self, *args: Any, **options: Any) -> None:
        days = options["days"]
        if days is not None and not 1 <= days <= _MOST_DAYS:
            raise CommandError(f"--days takes 1 to {_MOST_DAYS}.")
        expires_at = None if days is None else timezone.now() + timedelta(days=days)
        try:
            _, plaintext = create_access_token(
                user=person(options["user"]), name=options["name"], expires_at=expires_at
            )
        except ValidationError as error:
            raise CommandError(sentence(error)) from None
        self.stdout.write(plaintext)

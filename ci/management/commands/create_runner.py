"""`manage.py create_runner`: makes a Forgejo runner known that was set up offline, by the secret it was given."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ci.lifecycle.errors import LifecycleError
from ci.lifecycle.foreign_runners import create_runner
from ci.models import Scope
from forge.management.arguments import person, repository_named


class Command(BaseCommand):
    help = (
        "Make a runner known by the secret it was set up with (`forgejo-runner create-runner-file --secret …`). Of one "
        "that is known, its name, labels and secret are renewed: the first 16 characters of the secret say which it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--secret", help="40 hexadecimal digits; without it, the first line of the standard input")
        parser.add_argument("--name", required=True)
        parser.add_argument("--labels", default="", help="separated by commas; the runner declares them at its start")
        parser.add_argument("--scope", default="", metavar="OWNER[/NAME]", help="whom it serves; default: everybody")
        parser.add_argument("--ephemeral", action="store_true", help="it takes one job, ever")

    def handle(self, *args: Any, **options: Any) -> None:
        secret = options["secret"] or sys.stdin.readline().strip()
        labels = [label.strip().partition(":")[0] for label in options["labels"].split(",")]
        try:
            runner, is_new = create_runner(
                secret=secret,
                name=options["name"],
                labels=labels,
                scope=_scope(options["scope"]),
                ephemeral=options["ephemeral"],
            )
        except LifecycleError as error:
            raise CommandError(error.detail) from None
        self.stdout.write(f"{runner.name} for {runner.scope} is {'known now' if is_new else 'renewed'}: {runner.uuid}")


def _scope(text: str) -> Scope:
    """Raises CommandError."""
    if not text:
        return Scope()
    return Scope(repository=repository_named(text)) if "/" in text else Scope(owner=person(text))

"""How does an operator delete a repository?"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from forge.management.arguments import repository_named
from forge.repositories import delete_repository


class Command(BaseCommand):
    help = "Delete a repository with its runs, secrets and files. This cannot be undone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("repository", metavar="OWNER/NAME")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, **options: Any) -> None:
        repository = repository_named(options["repository"])
        name = str(repository)
        if not options["yes"] and input(f"Type {name} to delete it for ever: ") != name:
            raise CommandError("Nothing was deleted.")
        delete_repository(repository=repository)
        self.stdout.write(f"Deleted {name}.")

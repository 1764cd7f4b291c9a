"""How does an operator create a repository?"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from forge.management.arguments import person, sentence
from forge.repositories import create_repository


class Command(BaseCommand):
    help = "Create an empty repository."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("repository", metavar="OWNER/NAME")
        parser.add_argument("--public", action="store_true", help="everybody may read it; else its members only")
        parser.add_argument("--description", default="", metavar="TEXT")
        parser.add_argument("--default-branch", default="main", metavar="BRANCH")

    def handle(self, *args: Any, **options: Any) -> None:
        owner, slash, name = options["repository"].partition("/")
        if not slash:
            raise CommandError("Name the repository as OWNER/NAME.")
        try:
            repository = create_repository(
                owner=person(owner),
                name=name,
                private=not options["public"],
                description=options["description"],
                default_branch=options["default_branch"],
            )
        except ValidationError as error:
            raise CommandError(sentence(error)) from None
        self.stdout.write(repository.clone_url)

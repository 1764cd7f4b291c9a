"""Whom and what do the words of a command mean?"""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from forge.models import Repository


def person(username: str) -> User:
    """The user of that name. Raises CommandError."""
    found = get_user_model().objects.filter(username=username).first()
    if found is None:
        raise CommandError(f"There is no user {username!r}.")
    return found


def repository_named(text: str) -> Repository:
    """The repository OWNER/NAME. Raises CommandError."""
    owner, _, name = text.partition("/")
    found = Repository.objects.select_related("owner").filter(owner__username=owner, name__iexact=name).first()
    if found is None:
        raise CommandError(f"There is no repository {text!r}; name it as OWNER/NAME.")
    return found


def sentence(error: ValidationError) -> str:
    """What is wrong, field by field, in one line."""
    if hasattr(error, "message_dict"):
        return " ".join(f"{field}: {' '.join(messages)}" for field, messages in error.message_dict.items())
    return " ".join(error.messages)

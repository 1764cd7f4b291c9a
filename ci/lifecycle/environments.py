"""Which environment does a job's `environment` name, and how does one come and go?"""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from ci.lifecycle import events
from ci.lifecycle.errors import InvalidInput, NotFound
from ci.models import Environment
from forge.models import Repository

MAX_NAME = 255


def environment_of(repository: Repository, name: str | None) -> Environment | None:
    """The row of this name, compared without case; made at first use, as on GitHub."""
    if not name:
        return None
    found = Environment.objects.filter(repository=repository, name__iexact=name[:MAX_NAME]).first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            return Environment.objects.create(repository=repository, name=name[:MAX_NAME])
    except IntegrityError:  # somebody else was faster
        return Environment.objects.get(repository=repository, name__iexact=name[:MAX_NAME])


def create_environment(*, repository: Repository, name: str, actor: Any) -> Environment:
    """Raises InvalidInput."""
    name = name.strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise InvalidInput({"name": f"Give a name of 1 to {MAX_NAME} printable characters."})
    if Environment.objects.filter(repository=repository, name__iexact=name).exists():
        raise InvalidInput({"name": f"There is an environment {name} already."})
    events.record("environment_created", actor=actor, detail=f"{name} of {repository}")
    created = environment_of(repository, name)
    assert created is not None
    return created


def delete_environment(*, repository: Repository, name: str, actor: Any) -> None:
    """With its secrets and variables; jobs that used it stay, and are deployments no longer. Raises NotFound."""
    deleted, _ = Environment.objects.filter(repository=repository, name=name).delete()
    if not deleted:
        raise NotFound(f"{repository} has no environment {name}.")
    events.record("environment_deleted", actor=actor, detail=f"{name} of {repository}")

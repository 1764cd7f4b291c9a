"""How are secrets and variables set and deleted?"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.encryption import encrypt, rotate
from ci.lifecycle.errors import InvalidInput, NotFound
from ci.models import Scope, Secret, Variable
from ci.models.secret import variable_name

# GitHub's limits.
MAX_VALUE = 48 * 1024
MAX_ROWS = 500


def set_secret(*, scope: Scope, name: str, value: str, actor: Any) -> Secret:
    """Create or replace a secret. Raises InvalidInput."""
    name = _check(scope, Secret, name, value)
    row, _ = Secret.objects.update_or_create(
        owner=scope.owner,
        repository=scope.repository,
        environment=scope.environment,
        name=name,
        defaults={"encrypted": encrypt(value), "updated_at": timezone.now()},
    )
    events.record("secret_set", actor=actor, detail=f"{name} for {scope}")
    return row


def set_variable(*, scope: Scope, name: str, value: str, actor: Any) -> Variable:
    """Create or replace a variable. Raises InvalidInput."""
    name = _check(scope, Variable, name, value)
    row, _ = Variable.objects.update_or_create(
        owner=scope.owner,
        repository=scope.repository,
        environment=scope.environment,
        name=name,
        defaults={"value": value, "updated_at": timezone.now()},
    )
    events.record("variable_set", actor=actor, detail=f"{name} for {scope}")
    return row


def delete_secret(*, scope: Scope, name: str, actor: Any) -> None:
    """Raises NotFound."""
    _delete(Secret, scope, name)
    events.record("secret_deleted", actor=actor, detail=f"{name} for {scope}")


def delete_variable(*, scope: Scope, name: str, actor: Any) -> None:
    """Raises NotFound."""
    _delete(Variable, scope, name)
    events.record("variable_deleted", actor=actor, detail=f"{name} for {scope}")


@transaction.atomic
def rotate_secrets() -> int:
    """Encrypt every secret anew under the newest key; returns how many. Raises SecretUnreadable and changes none."""
    rows = list(Secret.objects.select_for_update())
    for row in rows:
        row.encrypted = rotate(row.encrypted)
    Secret.objects.bulk_update(rows, ["encrypted"], batch_size=500)
    events.record("secrets_rotated", detail=f"{len(rows)} secrets")
    return len(rows)


def _check(scope: Scope, model: type[Secret] | type[Variable], name: str, value: str) -> str:
    """The name as it is kept: in upper case, since GitHub's names compare without case."""
    errors = {}
    try:
        variable_name(name)
    except ValidationError as error:
        errors["name"] = error.messages[0]
    if len(name) > 255:
        errors["name"] = "At most 255 characters."
    if not value and model is Secret:
        errors["value"] = "A secret needs a value."
    if len(value.encode()) > MAX_VALUE or "\0" in value:
        errors["value"] = f"At most {MAX_VALUE // 1024} KiB, without NUL characters."
    rows = _rows(model, scope)
    if rows.count() >= MAX_ROWS and not rows.filter(name=name.upper()).exists():
        errors["name"] = f"There are {MAX_ROWS} already, the most there can be."
    if errors:
        raise InvalidInput(errors)
    return name.upper()


def _rows(model: type[Secret] | type[Variable], scope: Scope) -> QuerySet[Any]:
    return model._default_manager.filter(owner=scope.owner, repository=scope.repository, environment=scope.environment)


def _delete(model: type[Secret] | type[Variable], scope: Scope, name: str) -> None:
    deleted, _ = _rows(model, scope).filter(name=name.upper()).delete()
    if not deleted:
        raise NotFound(f"There is no {name.upper()} for {scope}.")

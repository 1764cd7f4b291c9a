"""What may a workflow read that its file does not say? Secrets (encrypted) and variables."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from ci.models.scope import Scoped

variable_name = RegexValidator(
    r"^(?![Gg][Ii][Tt][Hh][Uu][Bb]_)[A-Za-z_][A-Za-z0-9_]*\Z",
    "Use letters, digits and '_', not starting with a digit or with GITHUB_.",
)


class _Named(Scoped):
    name = models.CharField(max_length=255, validators=[variable_name])
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta(Scoped.Meta):
        abstract = True
        ordering = ["name"]
        constraints = [
            *Scoped.Meta.constraints,
            models.UniqueConstraint(
                fields=["owner", "repository", "name"],
                name="%(app_label)s_%(class)s_once_a_scope",
                nulls_distinct=False,
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Secret(_Named):
    """`encrypted` is Fernet text; ci.lifecycle.secrets alone reads and writes it."""

    encrypted = models.TextField(editable=False)


class Variable(_Named):
    value = models.TextField(max_length=48 * 1024)

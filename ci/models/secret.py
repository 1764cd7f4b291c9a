"""What may a workflow read that its file does not say? Secrets (encrypted) and variables."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from ci.models.scope import Scope, Scoped
from ci.models.workflow import Environment

variable_name = RegexValidator(
    r"^(?![Gg][Ii][Tt][Hh][Uu][Bb]_)[A-Za-z_][A-Za-z0-9_]*\Z",
    "Use letters, digits and '_', not starting with a digit or with GITHUB_.",
)


class _Named(Scoped):
    """With an environment, its repository is set too."""

    environment = models.ForeignKey(Environment, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=255, validators=[variable_name])
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta(Scoped.Meta):
        abstract = True
        ordering = ["name"]
        constraints = [
            *Scoped.Meta.constraints,
            models.UniqueConstraint(
                fields=["owner", "repository", "environment", "name"],
                name="%(app_label)s_%(class)s_once_a_scope",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(environment=None) | Q(repository__isnull=False),
                name="%(app_label)s_%(class)s_environment_of_a_repository",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def scope(self) -> Scope:
        return Scope(owner=self.owner, repository=self.repository, environment=self.environment)


class Secret(_Named):
    """`encrypted` is Fernet text; ci.lifecycle.secrets alone reads and writes it."""

    encrypted = models.TextField(editable=False)


class Variable(_Named):
    value = models.TextField(max_length=48 * 1024)

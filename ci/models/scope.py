"""Whom does a runner, a token or a secret serve: the whole instance, one owner, or one repository?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from forge.models import Repository


@dataclass(frozen=True)
class Scope:
    """Nothing set: the instance. Never owner and repository both; an environment only with its repository."""

    owner: Any = None
    repository: Repository | None = None
    environment: Any = None

    def __str__(self) -> str:
        if self.environment is not None:
            return f"{self.environment} of {self.repository}"
        if self.repository is not None:
            return str(self.repository)
        return self.owner.username if self.owner is not None else "the instance"


class Scoped(models.Model):
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    repository = models.ForeignKey(Repository, null=True, blank=True, on_delete=models.CASCADE, related_name="+")

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(
                condition=Q(owner=None) | Q(repository=None), name="%(app_label)s_%(class)s_one_scope"
            ),
        ]

    @property
    def scope(self) -> Scope:
        return Scope(owner=self.owner, repository=self.repository)

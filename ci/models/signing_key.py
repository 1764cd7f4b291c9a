"""With which key does this server sign id tokens, and which public keys must still be known?"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone


class SigningKey(models.Model):
    """An RSA key pair. A retired one keeps only its public half, until what it signed has expired."""

    kid = models.CharField(max_length=64, unique=True)
    algorithm = models.CharField(max_length=10, default="RS256")
    encrypted = models.TextField(blank=True, editable=False, help_text="The private half: PEM, as Fernet text.")
    public = models.TextField(help_text="The public half: PEM.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["algorithm"], condition=Q(retired_at=None), name="signing_key_one_in_use_an_algorithm"
            ),
            models.CheckConstraint(
                condition=(Q(retired_at=None) & ~Q(encrypted="")) | (Q(retired_at__isnull=False) & Q(encrypted="")),
                name="signing_key_in_use_has_its_private_half",
            ),
        ]

    def __str__(self) -> str:
        return self.kid

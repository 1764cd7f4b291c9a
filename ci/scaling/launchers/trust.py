"""May a set's template reach beyond its own container?"""

from __future__ import annotations

from django.conf import settings


def templates_are_trusted() -> bool:
    """
    Whether templates may name the host's folders, other networks, other secrets and the like.

    Who may edit a set's template is not always who runs the machines it uses: so the operator has to say so.
    """
    return bool(getattr(settings, "SCALE_TRUSTED_TEMPLATES", False))


def needs_trust(what: str) -> str:
    return f"{what} is only for templates that the operator trusts (FORGE_SCALE_TRUSTED_TEMPLATES)."

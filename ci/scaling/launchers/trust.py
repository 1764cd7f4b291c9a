"""May a set's template reach beyond its own container?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.conf import settings

# False while the template of a person is checked who is no administrator of the instance.
_author_is_trusted: ContextVar[bool] = ContextVar("author_is_trusted", default=True)


def templates_are_trusted() -> bool:
    """
    Whether templates may name the host's folders, other networks, other secrets and the like.

    Who may edit a set's template is not always who runs the machines it uses: so the operator has to say so, and then
    only administrators may write such a template. One that is written is used whoever edits the rest of the set.
    """
    return _author_is_trusted.get() and bool(getattr(settings, "SCALE_TRUSTED_TEMPLATES", False))


@contextmanager
def written_by(*, trusted: bool) -> Iterator[None]:
    """Check templates as those of an administrator of the instance (`trusted`), or of somebody else."""
    before = _author_is_trusted.set(trusted)
    try:
        yield
    finally:
        _author_is_trusted.reset(before)


def needs_trust(what: str) -> str:
    if not _author_is_trusted.get() and getattr(settings, "SCALE_TRUSTED_TEMPLATES", False):
        return f"{what} is only for administrators of the instance: it reaches beyond the container."
    return f"{what} is only for templates that the operator trusts (FORGE_SCALE_TRUSTED_TEMPLATES)."

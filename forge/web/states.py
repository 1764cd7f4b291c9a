"""Did a commit's runs succeed? Asked of whatever settings.COMMIT_STATES names, so that the forge knows no CI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from forge.models import Repository


def states_of(repository: Repository, shas: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """`outcome`, `url` and `title` by SHA, of the commits that have runs."""
    if not settings.COMMIT_STATES or not shas:
        return {}
    states: Mapping[str, Mapping[str, Any]] = import_string(settings.COMMIT_STATES)(repository, list(shas))
    return states

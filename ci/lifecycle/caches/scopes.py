"""Whose caches does a run see, and whose may it add to? A scope is a ref.

Source: GitHub docs, "Dependency caching reference", restrictions for accessing a cache: a run sees its own ref's, those
of the branch that its pull request would go to, and those of the default branch; it adds to its own ref's only. The ref
of a pull request is refs/pull/N/merge, so no other run but those of that pull request ever sees what it added.
"""

from __future__ import annotations

from typing import Any

from ci.lifecycle.errors import NotAllowed
from ci.models import Run
from forge.models import Repository

_OF_PULL_REQUESTS = frozenset(
    {"pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_target"}
)


def readable_scopes(run: Run) -> list[str]:
    """The refs whose caches the run sees, the nearest first."""
    return list(dict.fromkeys([run.ref, *_base(run), default_scope(run.repository)]))


def writable_scope(run: Run, repository: Repository) -> str:
    """The ref for which the run may keep something.

    Raises NotAllowed for a run that nobody with write access caused, on the default branch: every run would find what
    a stranger put there.
    """
    if not run.trusted and run.ref == default_scope(repository):
        raise NotAllowed(
            "This run was not caused by somebody with write access: it may read the caches of the default branch, "
            "but not add to them."
        )
    return run.ref


def default_scope(repository: Repository) -> str:
    return f"refs/heads/{repository.default_branch}"


def _base(run: Run) -> list[str]:
    if run.event not in _OF_PULL_REQUESTS:
        return []  # what else is called so in a payload, somebody may have made up
    found: Any = run.payload
    for name in ("pull_request", "base", "ref"):
        found = found.get(name) if isinstance(found, dict) else None
    return [f"refs/heads/{found}"] if isinstance(found, str) and found else []

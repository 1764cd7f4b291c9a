"""Which lock files did a git leave behind that was killed? Each would refuse every later push to its ref, for ever."""

from __future__ import annotations

import contextlib
import logging

from forge.models import Repository

_log = logging.getLogger(__name__)


def remove_stale_locks(repository: Repository, names: list[str], *, before: float) -> None:
    """Remove the lock files of these refs (or of `packed-refs`) that were made before `before`, a time of the epoch.

    Only for refs that no push under way has in hand since then: git itself cannot tell a dead owner from a slow one.
    """
    for name in names:
        path = repository.path / f"{name}.lock"
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()
                _log.warning("Repository %s: removed %s.lock, which a killed git had left", repository.pk, name)

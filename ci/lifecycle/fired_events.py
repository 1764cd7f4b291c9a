"""Which events does this server fire? A workflow may name others, and is then never started by them."""

from __future__ import annotations

from collections.abc import Iterable

FIRED = frozenset(
    {
        "create",
        "delete",
        "push",
        "repository_dispatch",
        "schedule",
        "workflow_call",
        "workflow_dispatch",
        "workflow_run",
    }
)


def never_fired(events: Iterable[str]) -> list[str]:
    """Those of a workflow's events that nothing here fires yet, sorted."""
    return sorted(set(events) - FIRED)

"""How does a set's runner lose its process? It is told to go, and takes up room until it is known to be gone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from ci.models import LaunchAttempt, Runner


def open_attempt(runner: Runner) -> LaunchAttempt | None:
    """The attempt whose process may exist."""
    return LaunchAttempt.objects.filter(runner=runner, ended_at=None).first()


def told_to_go(now: datetime) -> dict[str, Any]:
    """Fields of a runner whose process shall go: asked first, forced when that does not help."""
    return {"deleting_at": now, "cleanup_at": now + timedelta(seconds=settings.SCALE_STOP_SECONDS)}


def gone(now: datetime) -> dict[str, Any]:
    """Fields of an ended runner whose process is known to be gone."""
    return {"stopped_at": now, "cleanup_at": None}


def leaving(runner: Runner) -> dict[str, Any]:
    """Fields for the end of a locked runner that has no job: what becomes of its process, if it is a set's."""
    if runner.runner_set_id is None:
        return {}
    now = timezone.now()
    rest: dict[str, Any] = {"next_attempt_at": None, "idle_since": None}
    if open_attempt(runner) is None:
        return rest | gone(now)
    # One that was told to go is not given its time a second time.
    return rest if runner.deleting_at is not None else rest | told_to_go(now)

"""What did a set need and have over time? A point for its chart whenever that changed."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from ci.lifecycle import demand
from ci.models import RunnerSet, RunnerSetSample

# Between two points, unless the desired count has changed: that one is why the others will.
EVERY = timedelta(seconds=10)


def take(runner_set: RunnerSet, sight: demand.Sight, desired: int, now: datetime) -> list[datetime]:
    """Keep a point where it says something new; when to look again for one that came too soon after the last."""
    useful = sight.useful
    busy = sum(runner.busy for runner in useful)
    idle = sum(runner.up and not runner.busy for runner in useful)
    values = {
        "queued": sight.queued,
        "busy": busy,
        "idle": idle,
        "starting": len(useful) - busy - idle,
        "desired": desired,
    }
    last = RunnerSetSample.objects.filter(runner_set=runner_set).order_by("-at", "-pk").first()
    if last is not None and all(getattr(last, name) == value for name, value in values.items()):
        return []
    if last is not None and last.desired == desired and last.at + EVERY > now:
        return [last.at + EVERY]
    RunnerSetSample.objects.create(runner_set=runner_set, at=now, **values)
    old = now - timedelta(seconds=settings.SCALE_KEEP_SECONDS)
    RunnerSetSample.objects.filter(runner_set=runner_set, at__lt=old).delete()
    return []

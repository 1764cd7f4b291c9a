"""When does a `schedule` entry fire next, and is it written right? (POSIX cron, 5 fields)"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

SHORTEST_MINUTES = 5
_MAX_LENGTH = 200
_FIELDS = ("minute", "hour", "day of month", "month", "day of week")
_FIELD = re.compile(r"[0-9A-Za-z*/,-]+")
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}")


class ScheduleError(ValueError):
    """A cron text or time zone that cannot be used; the text says what to write."""


def check(cron: str, timezone: str | None = None) -> None:
    """Raises ScheduleError unless `cron` is valid, fires at some time, never more often than every 5 minutes, and
    `timezone` (None: UTC) is known."""
    zone = _zone(timezone)
    fields = cron.split()
    if len(cron) > _MAX_LENGTH or len(fields) != len(_FIELDS):
        raise ScheduleError(f"Invalid cron expression '{cron}': write five fields, {', '.join(_FIELDS)}")
    for name, text in zip(_FIELDS, fields, strict=True):
        if not _FIELD.fullmatch(text) or "l" in text.casefold().replace("jul", ""):
            raise ScheduleError(f"Invalid cron expression '{cron}': the {name} cannot be '{text}'")
    now = datetime(2026, 1, 1, tzinfo=UTC).astimezone(zone)
    try:
        simulation = CronSim(" ".join(fields), now)
        next(simulation)
    except (CronSimError, StopIteration) as error:
        raise ScheduleError(f"Invalid cron expression '{cron}': {error or 'it never fires'}") from error
    if _gap(simulation) < SHORTEST_MINUTES:
        message = f"The schedule '{cron}' runs too often: at most every {SHORTEST_MINUTES} minutes. Write '*/5 * * * *'"
        raise ScheduleError(message)


def _gap(simulation: CronSim) -> int:
    minutes = sorted(simulation.minutes)
    within = [later - earlier for earlier, later in pairwise(minutes)]
    hours = sorted(simulation.hours)
    neighbours = (0 in hours and 23 in hours) or any(later - earlier == 1 for earlier, later in pairwise(hours))
    across = [minutes[0] + 60 - minutes[-1]] if neighbours else []
    return min(within + across, default=60)


def next_time(cron: str, timezone: str | None, after: datetime) -> datetime:
    """The first time later than `after` (aware), in UTC. Raises ScheduleError as `check` does."""
    zone = _zone(timezone)
    try:
        found: datetime = next(CronSim(" ".join(cron.split()), after.astimezone(zone)))
    except (CronSimError, StopIteration) as error:
        raise ScheduleError(f"The cron expression '{cron}' has no next time") from error
    return found.astimezone(UTC)


def _zone(timezone: str | None) -> ZoneInfo:
    name = timezone or "UTC"
    try:
        if not _ZONE.fullmatch(name):
            raise ValueError
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        message = f"Unknown time zone '{name[:100]}': write an IANA name such as Europe/London"
        raise ScheduleError(message) from error

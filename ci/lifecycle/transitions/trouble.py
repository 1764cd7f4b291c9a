"""Which runners of a set may be started now? All that are due; of a set whose launches keep failing, one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max

from ci.lifecycle import events
from ci.lifecycle.transitions.guard import lock_set
from ci.models import LaunchAttempt, Runner, RunnerPhase, RunnerSet

# More within the window are trouble.
MOST_FAILURES = 5


@dataclass(frozen=True)
class Launches:
    ready: tuple[int, ...]
    wakes: list[datetime]
    trouble: str
    troubled_until: datetime | None


def launches(runner_set: RunnerSet, now: datetime) -> Launches:
    """Decide for a locked set, whose missing runners have been made."""
    waiting = Runner.objects.filter(runner_set=runner_set, next_attempt_at__isnull=False)
    if runner_set.phase != RunnerSet.Phase.RUNNING:
        return Launches((), [], runner_set.trouble, None)
    until, last = _troubled(runner_set.pk, now)
    _tell(runner_set, until)
    due = waiting.filter(next_attempt_at__lte=now).order_by("next_attempt_at", "pk")
    ready = tuple(due.values_list("pk", flat=True))
    later = (
        waiting.filter(next_attempt_at__gt=now).order_by("next_attempt_at").values_list("next_attempt_at", flat=True)
    )
    wakes = [at for at in later[:1] if at is not None]
    if until is not None and last is not None:
        wakes.append(until)
        if _pause_over(last) > now:
            wakes.append(_pause_over(last))
            ready = ()
        else:
            ready = ready[: 0 if _is_starting(runner_set) else 1]
    return Launches(ready, wakes, _why(runner_set, now), until)


def holds_back(set_id: int, now: datetime) -> bool:
    """Whether a runner of the set may not be started after all: launches that were decided on before it got into
    trouble are no exception. Once it is in trouble, of several who ask at once the first to commit is let go."""
    if _troubled(set_id, now)[1] is None:
        return False
    runner_set = lock_set(set_id)
    _, last = _troubled(set_id, now)
    return last is not None and (_pause_over(last) > now or _is_starting(runner_set))


def _pause_over(last: datetime) -> datetime:
    return last + timedelta(seconds=settings.SCALE_TROUBLE_PAUSE_SECONDS)


def _troubled(set_id: int, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Until when the set is troubled, if it is, and when its last failure was. A job taken since ends all trouble."""
    window = timedelta(seconds=settings.SCALE_TROUBLE_WINDOW_SECONDS)
    worked = Runner.objects.filter(runner_set=set_id, used_job_id__isnull=False).aggregate(at=Max("registered_at"))
    failed = LaunchAttempt.objects.filter(runner__runner_set=set_id, failed=True, ended_at__gt=now - window)
    if worked["at"] is not None:
        failed = failed.filter(ended_at__gt=worked["at"])
    found = failed.aggregate(count=Count("pk"), last=Max("ended_at"))
    if found["count"] <= MOST_FAILURES:
        return None, None
    return found["last"] + window, found["last"]


def _tell(runner_set: RunnerSet, until: datetime | None) -> None:
    was = runner_set.troubled_until is not None
    if until is not None and not was:
        detail = "Its runners keep failing: they are started one at a time until one works."
        events.record("runner_set_troubled", runner_set=runner_set, detail=detail)
    elif was and until is None:
        events.record("runner_set_untroubled", runner_set=runner_set)


def _is_starting(runner_set: RunnerSet) -> bool:
    return LaunchAttempt.objects.filter(
        runner__runner_set=runner_set, runner__phase=RunnerPhase.PENDING, runner__registered_at=None, ended_at=None
    ).exists()


def _why(runner_set: RunnerSet, now: datetime) -> str:
    """Why something does not start, for the set's page: the newest reason, until something has started since."""
    asked = LaunchAttempt.objects.filter(runner__runner_set=runner_set, ended_at=None, handle="").exclude(reason="")
    unanswered = asked.order_by("-started_at", "-pk").first()
    if unanswered is not None:
        return unanswered.reason
    window = timedelta(seconds=settings.SCALE_TROUBLE_WINDOW_SECONDS)
    started = Runner.objects.filter(runner_set=runner_set).aggregate(at=Max("registered_at"))["at"]
    reasons = LaunchAttempt.objects.filter(runner__runner_set=runner_set, ended_at__gt=now - window).exclude(reason="")
    newest = reasons.filter(runner__used_job_id=None).order_by("-ended_at", "-pk").first()
    if newest is None or (started is not None and newest.ended_at is not None and started > newest.ended_at):
        return ""
    return newest.reason

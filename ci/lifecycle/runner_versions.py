"""Is a set's runner too old to work here? Then it ends as outdated, and its set is parked."""

from __future__ import annotations

import re

from django.conf import settings

from ci.lifecycle.errors import RunnerOutdated
from ci.lifecycle.transitions import retire_runner
from ci.models import Runner, RunnerPhase

_NUMBERS = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,3})")


def refuse_outdated(runner: Runner) -> None:
    """End a runner of a set that has no job, and says that it is older than FORGE_OLDEST_RUNNER. Raises RunnerOutdated.

    Only those of sets: others are installed by people, who update them when they like.
    """
    if not settings.OLDEST_RUNNER or runner.runner_set_id is None or runner.used_job_id is not None:
        return
    if not _is_older(runner.agent_version, settings.OLDEST_RUNNER):
        return
    reason = f"Its version {runner.agent_version} is older than {settings.OLDEST_RUNNER}, the oldest one taken here."
    retire_runner(runner_id=runner.pk, reason=reason, phase=RunnerPhase.OUTDATED)
    raise RunnerOutdated(f"The forge takes no runner older than {settings.OLDEST_RUNNER}: install its present one.")


def _is_older(version: str, oldest: str) -> bool:
    """By their numbers. What is no version is taken for none: it may be a runner of another kind, or one that has not
    said yet what it is."""
    mine, least = _NUMBERS.match(version), _NUMBERS.match(oldest)
    if mine is None or least is None:
        return False
    return _numbers(mine[1]) < _numbers(least[1])


def _numbers(text: str) -> tuple[int, ...]:
    numbers = [int(part) for part in text.split(".")]
    return tuple(numbers + [0] * (4 - len(numbers)))

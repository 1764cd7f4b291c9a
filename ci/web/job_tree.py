"""In which order are a run's jobs listed? By level, and the jobs of a called workflow below their call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ci.models import Job

# Deeper ones are drawn no further to the right.
MOST_INDENTS = 4


@dataclass(frozen=True)
class Listed:
    """A job in a list. `prefix`: the part of its name that it shares with the call above it."""

    job: Job
    depth: int
    prefix: str

    @property
    def short(self) -> str:
        return self.job.name[len(self.prefix) :]

    @property
    def indent(self) -> int:
        return min(self.depth, MOST_INDENTS)


def by_level(jobs: Sequence[Job]) -> list[tuple[int, list[Listed]]]:
    """All of an attempt's jobs, given in the order of level, key and leg, below the level of their outermost call."""
    scopes = _scopes(jobs)
    top = groupby(scopes.get(None, ()), key=lambda job: job.level)
    return [(level, [listed for job in group for listed in _tree(job, None, scopes, 0)]) for level, group in top]


def below(jobs: Sequence[Job], call: Job) -> list[Listed]:
    """The jobs of a call, and of the calls among them."""
    scopes = _scopes(jobs)
    return [listed for job in scopes.get(call.pk, ()) for listed in _tree(job, call, scopes, 0)]


def own_work(jobs: Sequence[Job]) -> list[Job]:
    """Without the calls whose jobs stand beside them: what is left is done, or was to be done, by itself."""
    called = {job.parent_id for job in jobs}
    return [job for job in jobs if job.pk not in called]


def _scopes(jobs: Sequence[Job]) -> dict[int | None, list[Job]]:
    scopes: dict[int | None, list[Job]] = {}
    for job in jobs:
        scopes.setdefault(job.parent_id, []).append(job)
    return scopes


def _tree(job: Job, call: Job | None, scopes: dict[int | None, list[Job]], depth: int) -> list[Listed]:
    prefix = f"{call.name} / " if call is not None else ""
    found = [Listed(job, depth, prefix if job.name.startswith(prefix) else "")]
    for inner in scopes.get(job.pk, ()):
        found += _tree(inner, job, scopes, depth + 1)
    return found

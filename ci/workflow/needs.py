"""Which jobs wait for which, and what became of them together?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


class NeedsError(ValueError):
    """The needs of a workflow name an unknown job or go round in a circle. `job` and `need` are the two ends."""

    def __init__(self, message: str, *, job: str, need: str) -> None:
        super().__init__(message)
        self.job = job
        self.need = need


def order(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """All jobs, each after its needs, otherwise as given. Raises NeedsError for an unknown need or a cycle."""
    position = {job: index for index, job in enumerate(needs)}
    waiting: dict[str, int] = {}
    dependents: dict[str, list[str]] = {job: [] for job in needs}
    for job, wanted in needs.items():
        unique = set(wanted)
        for need in wanted:
            if need not in position:
                raise NeedsError(f"Job '{job}' depends on unknown job '{need}'.", job=job, need=need)
        waiting[job] = len(unique)
        for need in unique:
            dependents[need].append(job)
    front = [job for job in needs if not waiting[job]]
    ordered: list[str] = []
    while front:
        ordered.extend(front)
        released: list[str] = []
        for job in front:
            for dependent in dependents[job]:
                waiting[dependent] -= 1
                if not waiting[dependent]:
                    released.append(dependent)
        front = sorted(released, key=position.__getitem__)
    if len(ordered) < len(position):
        job, need = _cycle({job: needs[job] for job in needs if waiting[job]})
        message = f"Job '{job}' depends on job '{need}' which creates a cycle in the dependency graph."
        raise NeedsError(message, job=job, need=need)
    return ordered


def _cycle(stuck: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """The edge that closes a circle among jobs that all wait for one another or behind such a circle."""
    job = next(iter(stuck))
    seen: set[str] = set()
    while True:
        seen.add(job)
        need = next(need for need in stuck[job] if need in stuck)
        if need in seen:
            return job, need
        job = need


def ancestors(needs: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """For every job all jobs it waits for, directly or through others."""
    found: dict[str, frozenset[str]] = {}
    for job in order(needs):
        found[job] = frozenset(needs[job]).union(*(found[need] for need in needs[job]))
    return {job: found[job] for job in needs}


def levels(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """0 for a job without needs, else one more than the highest level among its needs."""
    found: dict[str, int] = {}
    for job in order(needs):
        found[job] = 1 + max((found[need] for need in needs[job]), default=-1)
    return {job: found[job] for job in needs}


def ready(results: Mapping[str, str | None], needs: Mapping[str, Sequence[str]]) -> list[str]:
    """The jobs without a result whose needs all have one."""
    return [
        job
        for job, wanted in needs.items()
        if results.get(job) is None and all(results.get(need) is not None for need in wanted)
    ]


def merge_outputs(legs: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The outputs of a job over its legs in order: later legs overwrite earlier ones, an empty value never does."""
    merged: dict[str, str] = {}
    for outputs in legs:
        for name, value in outputs.items():
            if value != "" or name not in merged:
                merged[name] = value
    return merged


def result(legs: Iterable[tuple[str, bool]]) -> str:
    """The result of a job over its legs, given as (conclusion, continue_on_error): a tolerated failure is a success;
    then failure > cancelled > success > skipped. Without legs the job was skipped."""
    counted = {"success" if tolerated and conclusion == "failure" else conclusion for conclusion, tolerated in legs}
    return next((one for one in ("failure", "cancelled", "success") if one in counted), "skipped")

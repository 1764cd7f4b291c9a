"""Did every job end as it must, given who was killed? Judged by the rows alone, once everything has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise
from typing import Any

from tests.chaos import expected_log
from tests.chaos.killer import RESTARTS, Kill
from tests.chaos.workload import FOLDER, Planned, Workload

Row = dict[str, Any]

OUTAGES = frozenset({"a web worker", "all of web", "a database connection", "the database"})
HARMED = frozenset({"a runner", "a runner, frozen", *RESTARTS})
# Clocks of the same machine, read by different processes shortly before and after they act.
SLACK = 2.0
LOCK_SECONDS = 20.0  # the product's own lock_timeout


class Verdict:
    def __init__(self, workload: Workload, found: dict[str, Any], kills: Sequence[Kill]) -> None:
        self._workload, self._kills = workload, kills
        self._runs: dict[int, Row] = {run["id"]: run for run in found["runs"]}
        self._jobs: list[Row] = found["jobs"]
        self.figures: Counter[str] = Counter({"tasks left for later": found["tasks"]})

    def problems(self) -> list[str]:
        found = []
        for job in self._jobs:
            if job["carried_from_id"] is None:
                found += [f"job {job['id']} ({job['name']}, {job['path']}): {it}" for it in self._problems_of(job)]
        return [*found, *self._problems_of_runs()]

    def _problems_of(self, job: Row) -> Iterator[str]:
        self.figures["jobs"] += 1
        self.figures["requeues"] += sum(event["kind"] == "requeued" for event in job["events"])
        self.figures["claims repeated"] += sum(event["kind"] == "claim_repeated" for event in job["events"])
        planned = self._workload.planned(job["path"], job["key"])
        if planned is None:
            return  # a call: its jobs are judged, and its run
        said = expected_log.read(job, planned)
        self.figures["log lines"] += job["log"].count("\n")
        if said.problem:
            yield f"its log: {said.problem}"
        end = job["events"][-1]["kind"]
        if end == "lost":
            yield from self._problems_of_a_loss(job)
        elif job["conclusion"] == "success":
            if not said.complete or said.code is not None:
                yield "it succeeded, and its log does not hold all that it says"
            if planned.breaks(attempt=job["attempt"], leg=job["matrix"].get("n")):
                yield "it succeeded, and was meant to fail"
            if not self._may_run(job, planned):
                yield "it ran, though what it needs did not succeed"
        elif job["conclusion"] == "failure":
            yield from self._problems_of_a_failure(job, planned, said)
        elif job["conclusion"] == "cancelled":
            yield from self._problems_of_a_cancel(job)
        elif self._may_run(job, planned) or job["assignment"] or job["log"]:
            yield "it was skipped"

    def _problems_of_a_loss(self, job: Row) -> Iterator[str]:
        """Only who was killed or frozen is lost, or who could not reach the forge for so long."""
        self.figures["lost"] += 1
        claimed = max(event["at"] for event in job["events"] if event["to"] == "assigned")
        ended = job["events"][-1]["at"]
        if "was lost" not in job["end_note"]:
            yield f"it was lost, and its page says {job['end_note']!r}"
        if job["conclusion"] != ("cancelled" if job["cancel_reason"] else "failure"):
            yield f"it was lost and is {job['conclusion']}"
        if not self._struck(HARMED, claimed - SLACK, ended, runner=job["runner_name"]):
            self.figures["lost to an outage"] += 1
            if not self._struck(OUTAGES, claimed - 60, ended):
                yield f"{job['end_note']} Nobody had killed it."

    def _problems_of_a_failure(self, job: Row, planned: Planned, said: expected_log.Said) -> Iterator[str]:
        claimed = max((event["at"] for event in job["events"] if event["to"] == "assigned"), default=0.0)
        if planned.breaks(attempt=job["attempt"], leg=job["matrix"].get("n")) and said.code == 1 and said.complete:
            return
        hit = self._struck({"a step"}, claimed, job["events"][-1]["at"] + SLACK, runner=job["runner_name"])
        if not hit or said.code != 137:
            yield f"it failed with {said.code} ({job['end_note']!r}), and nobody had killed its step"

    def _problems_of_a_cancel(self, job: Row) -> Iterator[str]:
        reason = job["cancel_reason"]
        siblings = [other for other in self._siblings(job) if other["key"] == job["key"]]
        allowed = {
            "owner": job["path"] == f"{FOLDER}/stopped.yml",
            "superseded": job["path"] == f"{FOLDER}/deploy.yml",
            "fail_fast": any(other["conclusion"] == "failure" for other in siblings),
        }
        if not allowed.get(reason):
            yield f"it was cancelled: {reason or 'for no reason'} ({job['end_note']!r})"
        elif not job["end_note"]:
            yield "it was cancelled, and its page does not say why"

    def _may_run(self, job: Row, planned: Planned) -> bool:
        return planned.always or all(self._result(job, key) == "success" for key in planned.needs)

    def _siblings(self, job: Row) -> list[Row]:
        same = (job["run_id"], job["attempt"], job["parent_id"])
        return [other for other in self._jobs if (other["run_id"], other["attempt"], other["parent_id"]) == same]

    def _result(self, job: Row, key: str) -> str:
        return combined(other["conclusion"] for other in self._siblings(job) if other["key"] == key)

    def _struck(self, kinds: Set[str], since: float, until: float, *, runner: str = "") -> bool:
        """Whether a kill of these kinds came in that time; with `runner`, one that can have hit it."""
        return any(
            kill.kind in kinds
            and since <= kill.until
            and kill.at <= until
            and (not kill.runner or runner in ("", kill.runner))
            for kill in self._kills
        )

    def _problems_of_runs(self) -> Iterator[str]:
        for run in self._runs.values():
            rows = [job for job in self._jobs if job["run_id"] == run["id"] and job["attempt"] == run["attempt"]]
            conclusion = combined(job["conclusion"] for job in rows if job["parent_id"] is None)
            if run["conclusion"] != conclusion:
                yield f"run {run['id']} ({run['title']}) is {run['conclusion']}, its jobs say {conclusion}"
        yield from self._problems_of_limits()
        yield from self._problems_of_group("deploy")
        yield from self._problems_of_group("line")

    def _problems_of_group(self, name: str) -> Iterator[str]:
        """One after the other; who came last is not superseded, and of a queue nobody is."""
        runs = [run for run in self._runs.values() if run["workflow_path"] == f"{FOLDER}/{name}.yml"]
        ran = sorted((run["started"], run["ended"], run["title"]) for run in runs if run["started"])
        for before, after in pairwise(ran):
            if after[0] < before[1]:
                yield f"{after[2]} of the group {name} began before {before[2]} had ended"
        served = runs if name == "line" else runs[-1:]
        yield from (f"{run['title']} of {name} was cancelled" for run in served if run["conclusion"] == "cancelled")

    def _problems_of_limits(self) -> Iterator[str]:
        """max-parallel at every moment, and no leg that began after fail-fast had stopped it."""
        legs = [job for job in self._jobs if job["key"] == "leg" and job["carried_from_id"] is None]
        for job in legs:
            planned = self._workload.planned(job["path"], "leg")
            assert planned is not None
            others = [other for other in self._siblings(job) if other["key"] == "leg" and other is not job]
            for since, _ in _spans(job):
                going = sum(any(a <= since < b for a, b in _spans(other)) for other in others)
                if planned.max_parallel is not None and going >= planned.max_parallel:
                    yield f"{job['name']} of run {job['run_id']} was one of {going + 1} at once"
                failed = [other["events"][-1]["at"] for other in others if other["conclusion"] == "failure"]
                # A claim may still win the race against the end that stops it, which then waits for its lock.
                if planned.fail_fast and failed and since > min(failed) + LOCK_SECONDS:
                    yield f"{job['name']} of run {job['run_id']} began after another leg had failed"


def combined(conclusions: Iterable[str | None]) -> str:
    """Of a job over its legs, and of a run over its jobs."""
    found = set(conclusions)
    return next((name for name in ("failure", "cancelled", "success") if name in found), "skipped")


def _spans(job: Row) -> list[tuple[float, float]]:
    """From each claim to what took the job from its runner again."""
    moves = [event for event in job["events"] if event["kind"] not in ("cancel_requested", "claim_repeated")]
    return [(before["at"], after["at"]) for before, after in _assignments(moves)]


def _assignments(moves: list[Row]) -> Iterator[tuple[Row, Row]]:
    for number, move in enumerate(moves):
        if move["to"] == "assigned":
            yield move, next(later for later in moves[number + 1 :] if later["to"] in ("queued", "ended"))

"""Which steps of our job page are the steps of a task? Its own, between "Set up job" and "Complete job", by its lines.

A runner tells where in its log each step's lines begin and how many there are. What is before the first step's is of
the set-up; what comes after the last one's is of the completion, where the runner also has its post steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from ci.interop.protocol import runner_pb2 as pb
from ci.interop.runner_service.results import conclusion_of
from ci.interop.step_names import step_names
from ci.lifecycle.transitions.update_steps import MAX_STEPS
from ci.models import Conclusion, Job, Step, StepState
from ci.storage import logs

SET_UP, COMPLETE = "Set up job", "Complete job"
_LARGEST = 2**31 - 1
Report = dict[str, Any]


@dataclass(frozen=True)
class _Ranges:
    """Of lines, counted from the assignment's first: how many the set-up has, (first, count) of each step that has
    begun by its id, and where the completion's begin."""

    set_up: int
    own: dict[int, tuple[int, int]]
    end: int


def of(job: Job, state: pb.TaskState, *, left_out: Sequence[str] = ()) -> list[Report]:
    """What is new in what the report says of every step; most often nothing.

    `left_out`: outputs that cannot be kept, named on the last one.
    """
    known = {step.number: step for step in Step.objects.filter(job=job)}
    names = _names(job, known)
    extent = logs.extent(job.pk)
    length = extent.lines - extent.base
    steps = {step.id: step for step in state.steps if 0 <= step.id < len(names)}
    begun = [step for _, step in sorted(steps.items()) if _has_begun(step)]
    ranges = _ranges(begun, length)
    found = [_set_up(state, begun, ranges)]
    found += [_own(steps[index], name, ranges) for index, name in enumerate(names) if index in steps]
    if conclusion_of(state.result) is not None or len(names) == sum(_is_ended(step) for step in begun):
        found.append({"number": len(names) + 2, **_completion(state, begun, ranges, length, left_out)})
    placed = [_placed(report, extent.base) for report in found if report["number"] <= MAX_STEPS]
    return [report for report in placed if _is_news(report, known.get(report["number"]))]


def _names(job: Job, known: Mapping[int, Step]) -> list[str]:
    """Empty once all steps are known: the name that a step has stays."""
    count = len(job.definition.get("steps") or [])
    return [""] * count if all(number in known for number in range(2, count + 2)) else step_names(job)


def _is_news(report: Report, step: Step | None) -> bool:
    if step is None:
        return True
    if step.state == StepState.ENDED:
        return False
    told = {name: value for name, value in report.items() if name not in ("number", "name") and value is not None}
    return any(getattr(step, name) != value for name, value in told.items())


def _ranges(begun: Sequence[pb.StepState], length: int) -> _Ranges:
    # A step that has written nothing yet does not know where it will: the index is 0 then.
    position = set_up = min((_count(step.log_index) for step in begun if step.log_length > 0), default=length)
    own = {}
    for step in begun:
        first = _count(step.log_index) if step.log_length > 0 else position
        own[step.id] = first, _count(step.log_length)
        position = max(position, first + _count(step.log_length))
    return _Ranges(set_up, own, position)


def _set_up(state: pb.TaskState, begun: Sequence[pb.StepState], ranges: _Ranges) -> Report:
    report: Report = {"number": 1, "name": SET_UP, "first_line": 0, "started_at": _time(state, "started_at")}
    conclusion = conclusion_of(state.result)
    if not begun and conclusion is None:
        return {**report, "state": "running"}
    blamed = conclusion in (Conclusion.FAILURE, Conclusion.CANCELLED) and not begun
    began = [time for step in begun if (time := _time(step, "started_at"))]
    return {
        **report,
        "state": "ended",
        "conclusion": conclusion if blamed else Conclusion.SUCCESS,
        "ended_at": min(began, default=_time(state, "stopped_at")),
        "line_count": ranges.set_up,
    }


def _own(step: pb.StepState, name: str, ranges: _Ranges) -> Report:
    report: Report = {"number": step.id + 2, "name": name, "started_at": _time(step, "started_at")}
    if not _has_begun(step):
        return {**report, "state": "pending"}
    report["first_line"], report["line_count"] = ranges.own[step.id]
    conclusion = conclusion_of(step.result)
    if conclusion is None:
        return {**report, "state": "running"}
    return {**report, "state": "ended", "conclusion": conclusion, "ended_at": _time(step, "stopped_at")}


def _completion(
    state: pb.TaskState, begun: Sequence[pb.StepState], ranges: _Ranges, length: int, left_out: Sequence[str]
) -> Report:
    ends = [time for step in begun if (time := _time(step, "stopped_at"))]
    report: Report = {"name": COMPLETE, "first_line": ranges.end, "started_at": max(ends, default=None)}
    conclusion = conclusion_of(state.result)
    if conclusion is None:
        return {**report, "state": "running"}
    others = not begun or any(conclusion_of(step.result) == Conclusion.FAILURE for step in begun)
    report |= {
        "state": "ended",
        "conclusion": Conclusion.FAILURE if conclusion == Conclusion.FAILURE and not others else Conclusion.SUCCESS,
        "ended_at": _time(state, "stopped_at"),
        "line_count": max(0, length - ranges.end),
    }
    if left_out:
        names = ", ".join(name[:50] for name in left_out[:20])
        message = f"These outputs are too large or too many and were left out: {names}. Pass files as artifacts."
        report["annotations"] = [{"level": "warning", "message": message}]
    return report


def _placed(report: Report, base: int) -> Report:
    if "first_line" not in report:
        return report
    return {**report, "first_line": min(base + report["first_line"], _LARGEST)}


def _has_begun(step: pb.StepState) -> bool:
    return _time(step, "started_at") is not None or _is_ended(step)


def _is_ended(step: pb.StepState) -> bool:
    return conclusion_of(step.result) is not None


def _count(number: int) -> int:
    return min(max(number, 0), _LARGEST)


def _time(message: pb.TaskState | pb.StepState, field: str) -> datetime | None:
    """By the runner's clock; None where it is not set, which Go writes as the year 1."""
    given: Timestamp = getattr(message, field)
    if given.seconds <= 0:
        return None
    try:
        return given.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None

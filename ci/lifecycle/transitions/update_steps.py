"""How far has a job come? What its runner says of its steps; a finished step does not change again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ci.lifecycle.errors import Conflict, InvalidInput, JobEnded
from ci.lifecycle.transitions.guard import Proof, check_token, guarded, lock_job
from ci.models import Conclusion, Job, JobState, Step, StepState

MAX_STEPS = 1000
MAX_ANNOTATIONS = 50
MAX_SUMMARY = 1024 * 1024
_REPORTED = (
    "name",
    "state",
    "conclusion",
    "started_at",
    "ended_at",
    "first_line",
    "line_count",
    "annotations",
    "summary",
)


@guarded
def update_steps(*, job_id: int, token: Proof, steps: Sequence[Mapping[str, Any]]) -> None:
    """Note the steps. Raises NotFound, Unauthenticated, JobEnded, Conflict (not acknowledged yet), InvalidInput."""
    _, job = lock_job(job_id)
    check_token(job, token)
    if job.is_ended:
        raise JobEnded(str(job.conclusion), job.cancel_reason)
    if job.state != JobState.RUNNING:
        raise Conflict("The assignment is not acknowledged: send a heartbeat first.")
    write_steps(job, steps)


def write_steps(job: Job, reports: Sequence[Mapping[str, Any]]) -> None:
    """Insert or update the steps of a locked job, all in one statement for the new ones and one for the others."""
    known = {step.number: step for step in Step.objects.filter(job=job)}
    changed: dict[int, Step] = {}
    for report in reports:
        number = report["number"]
        if number > MAX_STEPS:
            raise InvalidInput({"number": f"A job has at most {MAX_STEPS} steps."})
        step = known.setdefault(number, Step(job=job, number=number))
        if step.state == StepState.ENDED:
            continue
        before = _values(step)
        _apply(step, report)
        # Runners that report all steps every second have mostly nothing new to say.
        if step.pk is None or _values(step) != before:
            changed[number] = step
    if changed:
        # The job's lock keeps others out; this is but the cheapest way to update many rows.
        Step.objects.bulk_create(
            changed.values(), update_conflicts=True, unique_fields=["job", "number"], update_fields=_REPORTED
        )


def _apply(step: Step, report: Mapping[str, Any]) -> None:
    state = StepState(report["state"])
    step.name = str(report.get("name") or step.name)[:500]
    step.started_at = _time(report.get("started_at")) or step.started_at
    step.first_line = report.get("first_line", step.first_line)
    step.line_count = report.get("line_count", step.line_count)
    step.annotations = list(report.get("annotations") or step.annotations)[:MAX_ANNOTATIONS]
    step.summary = str(report.get("summary") or step.summary)[:MAX_SUMMARY]
    step.state = state
    if state == StepState.ENDED:
        step.conclusion = Conclusion(report.get("conclusion") or Conclusion.SUCCESS)
        step.ended_at = _time(report.get("ended_at")) or timezone.now()


def _values(step: Step) -> list[Any]:
    return [getattr(step, field.attname) for field in Step._meta.concrete_fields]


def _time(value: Any) -> datetime | None:
    if isinstance(value, str):
        return parse_datetime(value)
    return value if isinstance(value, datetime) else None

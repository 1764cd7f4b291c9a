"""What does a job become when its needs have ended? Skipped, failed, one row a leg; and of a call, the called jobs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils import timezone

from ci.lifecycle import contexts, events
from ci.lifecycle.environments import environment_of
from ci.lifecycle.groups import group_of, settle_later
from ci.lifecycle.matching import label_set_of
from ci.lifecycle.scopes import Legs, ancestors
from ci.lifecycle.transitions.moves import end, end_with_run, queue, write
from ci.models import Conclusion, Hold, Job, Run
from ci.workflow import Concurrency, MatrixError, PlanError, calls, legs, needs
from ci.workflow.expressions import ExpressionError
from forge.models import Repository


def expand(run: Run, job: Job, groups: Legs, known: Mapping[str, str | None]) -> list[Job]:
    """Decide a job of a scope whose needs have ended. Returns the rows added."""
    before = ancestors(job.key, groups, known)
    try:
        expansion = legs.expand(
            job.definition,
            contexts=contexts.of_condition(run, job, groups, known),
            ancestors=before,
            cancelled=bool(run.cancel_reason),
            key=job.key,
        )
        found = _Found(run.repository)
        rows = [_leg_fields(run, job, leg, found) for leg in expansion.legs]
    except (ExpressionError, MatrixError, PlanError) as error:
        end(job, Conclusion.FAILURE, kind="unpreparable", note=f"The job could not be planned: {error}")
        return []
    if expansion.skipped:
        if run.cancel_reason:
            end_with_run(run, job)
        else:
            end(job, Conclusion.SKIPPED, kind="skipped", note="Its condition is false.")
        return []
    shared = {name: getattr(job, name) for name in ("run", "attempt", "parent", "key", "needs", "level", "definition")}
    write(job, **rows[0])
    return Job.objects.bulk_create(Job(**shared, hold=Hold.NEEDS, **fields) for fields in rows[1:])


class _Found:
    """The rows that legs name, each looked up once: those of a matrix mostly name the same."""

    def __init__(self, repository: Repository) -> None:
        self.label_set = functools.cache(label_set_of)
        self.environment = functools.cache(functools.partial(environment_of, repository))
        self.group = functools.cache(functools.partial(group_of, repository.pk))


def _leg_fields(run: Run, job: Job, leg: legs.Leg, found: _Found) -> dict[str, Any]:
    own, called = leg.concurrency, _called_concurrency(run, job, leg)
    environment = found.environment(leg.environment)
    own_grace = "cancel-timeout-minutes" in job.definition
    own_timeout = "timeout-minutes" in job.definition
    return {
        "name": _shown(job.parent, leg.name),
        "expanded": True,
        "matrix": leg.matrix,
        "matrix_index": leg.index,
        "matrix_total": leg.total,
        "fail_fast": leg.fail_fast,
        "max_parallel": leg.max_parallel,
        "continue_on_error": leg.continue_on_error,
        "timeout_minutes": leg.timeout_minutes if own_timeout else settings.JOB_TIMEOUT_MINUTES,
        "cancel_timeout_minutes": leg.cancel_timeout_minutes if own_grace else None,
        "runs_on": list(leg.labels),
        "label_set": None if leg.call else found.label_set(leg.labels),
        "call_inputs": leg.call.inputs if leg.call else {},
        "environment": environment,
        "environment_name": environment.name if environment else "",
        "deploys": leg.deploys,
        "concurrency_group": found.group(own.group) if own else None,
        "cancel_in_progress": bool(own and own.cancel_in_progress),
        "queue_all": bool(own and own.queue == "max"),
        "called_group": found.group(called.group) if called else None,
        "called_cancel_in_progress": bool(called and called.cancel_in_progress),
        "called_queue_all": bool(called and called.queue == "max"),
    }


def _called_concurrency(run: Run, job: Job, leg: legs.Leg) -> Concurrency | None:
    if leg.call is None:
        return None
    seen = {"github": contexts.github(run), "inputs": leg.call.inputs, "vars": contexts.variables(run.repository)}
    return calls.concurrency(job.definition["called"], contexts=seen)


def _shown(call: Job | None, name: str) -> str:
    return (calls.shown_name(call.name, name) if call is not None else name)[:500]


def enter(run: Run, job: Job) -> list[Job]:
    """A leg whose turn it is: into its concurrency group, or straight on. Returns the rows added."""
    if job.concurrency_group_id is None:
        return go(run, job)
    _hold(run, job, job.concurrency_group_id, Hold.CONCURRENCY)
    return []


def goes_straight(job: Job) -> bool:
    """Whether a job is a leg that nothing holds once its needs have ended: then it has never been in the queue."""
    held = job.max_parallel is not None or job.concurrency_group_id is not None
    return job.expanded and not held and not job.is_call and job.queued_at is None and job.runner_id is None


def _hold(run: Run, job: Job, group_id: int, hold: Hold) -> None:
    """What holds the group and waits for this very job would wait for ever: then the job is cancelled, as on GitHub."""
    if holder := _holder_above(run, job, group_id, hold):
        note = f"{holder} holds its concurrency group and waits for it, for ever: give one of the two another group."
        end(job, Conclusion.CANCELLED, kind="cancelled", note=note)
        return
    write(job, hold=hold, entered_group_at=timezone.now())
    events.record("held", job=job, from_state=job.state, to_state=job.state, detail=hold.label)
    settle_later(group_id)


def _holder_above(run: Run, job: Job, group_id: int, hold: Hold) -> str:
    """What is in that group and has this job as a part of it; '' for nothing."""
    if hold == Hold.CALLED_GROUP and job.concurrency_group_id == group_id:
        return "The job that calls it"
    call = job.parent
    while call is not None:
        if group_id in (call.concurrency_group_id, call.called_group_id):
            return call.name
        call = call.parent
    return "The run itself" if run.concurrency_group_id == group_id else ""


def go(run: Run, job: Job) -> list[Job]:
    """To the queue; or of a call, into the group of what it calls, then its jobs beside it. Returns the rows added."""
    if not job.is_call:
        queue(job)
        return []
    if job.called_group_id is not None and job.hold != Hold.CALLED_GROUP:
        _hold(run, job, job.called_group_id, Hold.CALLED_GROUP)
        return []
    called = job.definition["called"]
    write(job, hold=Hold.CALLED, started_at=timezone.now())
    events.record("called", job=job, from_state=job.state, to_state=job.state, detail=str(called.get("name", "")))
    if Job.objects.filter(parent=job).exists():  # a re-run made them
        return []
    planned = calls.plan_call(
        called, github=contexts.github(run), inputs=job.call_inputs, vars=contexts.variables(run.repository)
    )
    return Job.objects.bulk_create(
        Job(
            run=run,
            attempt=job.attempt,
            parent=job,
            key=inner.key,
            name=_shown(job, inner.name),
            needs=list(inner.needs),
            level=job.level + inner.level,
            definition=inner.definition,
            hold=Hold.NEEDS,
        )
        for inner in planned
    )


def end_call(run: Run, call: Job, groups: Legs, known: Mapping[str, str | None]) -> None:
    """Every job of a call has ended: so does the call, with the outputs that the called workflow declares."""
    outcome = {str(result) for result in known.values()}
    order = (Conclusion.FAILURE, Conclusion.CANCELLED, Conclusion.SUCCESS)
    conclusion = next((found for found in order if found in outcome), Conclusion.SKIPPED)
    note = ""
    outputs: dict[str, str] = {}
    if call.cancel_reason:
        conclusion, note = Conclusion.CANCELLED, call.get_cancel_reason_display() + "."
    else:
        try:
            outputs = _outputs(run, call, groups, known)
        except (ExpressionError, PlanError) as error:
            conclusion, note = Conclusion.FAILURE, f"Its outputs could not be evaluated: {error}"
    end(call, conclusion, note=note, outputs=outputs)


def _outputs(run: Run, call: Job, groups: Legs, known: Mapping[str, str | None]) -> dict[str, str]:
    jobs = {
        key: {"result": known[key], "outputs": needs.merge_outputs([leg.outputs for leg in group])}
        for key, group in groups.items()
    }
    seen = {
        "github": contexts.github(run),
        "inputs": call.call_inputs,
        "vars": contexts.variables(run.repository),
        "jobs": jobs,
    }
    return calls.outputs(call.definition["called"], contexts=seen)

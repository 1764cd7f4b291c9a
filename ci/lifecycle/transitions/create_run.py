"""How does an event become a run? Once for each event and workflow, with everything that can start already queued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F
from django.utils import timezone

from ci.lifecycle import contexts, events
from ci.lifecycle.announcing import announce
from ci.lifecycle.groups import group_of
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.concurrency import settle
from ci.lifecycle.transitions.guard import guarded, lock_group
from ci.lifecycle.transitions.moves import run_deadline, write
from ci.models import Hold, Job, Run, RunConclusion, RunState, Schedule, Workflow
from ci.workflow import Event, Plan, PlanError, Problem, plan
from ci.workflow import Workflow as Document
from ci.workflow.expressions import ExpressionError
from ci.workflow.storable import cleaned
from forge.models import Push, Repository


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What started a run. `push`, (`schedule`, `scheduled_for`) or the `source_…` make it unique: a repeat finds it."""

    repository: Repository
    path: str = ""
    event: str
    payload: Mapping[str, Any]
    ref: str
    sha: str
    title: str
    actor: Any = None
    trusted: bool = False
    inputs: Mapping[str, Any] = field(default_factory=dict)
    push: Push | None = None
    schedule: Schedule | None = None
    scheduled_for: datetime | None = None
    source_run: Run | None = None
    source_attempt: int | None = None
    source_action: str = ""


@guarded
def create_run(cause: Cause, document: Document) -> Run:
    """The run of this cause, made now or found. A document that cannot be planned makes a startup failure."""
    return _existing(cause) or _create(cause, document)


@guarded
def create_startup_failure(cause: Cause, problems: tuple[Problem, ...], *, name: str | None = None) -> Run:
    """A run that ended before it began: its file is wrong. The page shows each problem."""
    existing = _existing(cause)
    if existing is not None:
        return existing
    run = _insert(cause, name or cause.path)
    _fail_at_startup(run, problems)
    return run


def _existing(cause: Cause) -> Run | None:
    if cause.push is not None:
        return Run.objects.filter(push=cause.push, event=cause.event, workflow_path=cause.path).first()
    if cause.schedule is not None:
        return Run.objects.filter(schedule=cause.schedule, scheduled_for=cause.scheduled_for).first()
    if cause.source_run is not None:
        source = {"source_attempt": cause.source_attempt, "source_action": cause.source_action}
        return Run.objects.filter(source_run=cause.source_run, workflow_path=cause.path, **source).first()
    return None


def _insert(cause: Cause, name: str) -> Run:
    """The row, numbered under the workflow row's lock: two tasks for one push meet there, the second finds the run."""
    workflow, _ = Workflow.objects.get_or_create(
        repository=cause.repository, path=cause.path, defaults={"name": name[:255]}
    )
    Workflow.objects.filter(pk=workflow.pk).update(run_count=F("run_count") + 1)
    existing = _existing(cause)
    if existing is not None:
        Workflow.objects.filter(pk=workflow.pk).update(run_count=F("run_count") - 1)
        return existing
    workflow.refresh_from_db(fields=["run_count"])
    actor_name = cause.actor.get_username() if cause.actor is not None else ""
    return Run.objects.create(
        repository=cause.repository,
        workflow=workflow,
        workflow_path=cause.path,
        workflow_name=name[:255],
        number=workflow.run_count,
        title=cause.title[:500],
        push=cause.push,
        schedule=cause.schedule,
        scheduled_for=cause.scheduled_for,
        source_run=cause.source_run,
        source_attempt=cause.source_attempt,
        source_action=cause.source_action,
        event=cause.event,
        payload=dict(cause.payload),
        inputs=dict(cause.inputs),
        ref=cause.ref,
        sha=cause.sha,
        actor=cause.actor,
        actor_name=actor_name,
        triggered_by_name=actor_name,
        trusted=cause.trusted,
        state=RunState.WAITING,
        deadline_at=run_deadline(),
    )


def _create(cause: Cause, document: Document) -> Run:
    run = _insert(cause, document.name)
    if run.version or run.jobs.exists():
        return run
    event = Event(
        name=run.event,
        github=contexts.github(run),
        inputs=run.inputs,
        vars=contexts.variables(run.repository),
    )
    try:
        planned = plan(document, event)
    except (PlanError, ExpressionError) as error:
        _fail_at_startup(run, (Problem(cause.path, 0, 0, str(error)),))
        return run
    _fill(run, document, planned)
    _start(run, planned)
    return run


def _fill(run: Run, document: Document, planned: Plan) -> None:
    permissions = planned.permissions
    write(
        run,
        title=(planned.run_name or run.title)[:500],
        env=planned.env,
        defaults=planned.defaults,
        permissions={"all": permissions} if isinstance(permissions, str) else permissions,
        approval_pending=not run.trusted,
    )
    Job.objects.bulk_create(
        Job(
            run=run,
            key=job.key,
            name=job.name[:500],
            needs=list(job.needs),
            level=job.level,
            definition=job.definition,
            hold=Hold.RUN,
        )
        for job in planned.jobs
    )
    events.record("run_created", run=run, to_state=run.state, actor=run.actor, detail=f"{run.event} on {run.ref_name}")
    announce(run, "requested")


def _start(run: Run, planned: Plan) -> None:
    """Into its concurrency group, or straight on. The group is locked before any other run is, as the order wants."""
    if planned.concurrency is not None:
        group = group_of(run.repository_id, planned.concurrency.group)
        lock_group(group.pk)
        write(
            run,
            concurrency_group=group,
            cancel_in_progress=planned.concurrency.cancel_in_progress,
            queue_all=planned.concurrency.queue == "max",
            entered_group_at=timezone.now(),
        )
    enter(run)


def enter(run: Run) -> None:
    """A new attempt asks to go: held by an approval, let in by its group, or free. The caller holds run and group."""
    if run.approval_pending:
        return
    if run.concurrency_group_id is not None:
        settle(run.concurrency_group_id)
        run.refresh_from_db()
        return
    write(run, state=RunState.QUEUED)
    Job.objects.filter(run=run, attempt=run.attempt, hold=Hold.RUN).update(hold=Hold.NEEDS, version=F("version") + 1)
    advance(run)


def _fail_at_startup(run: Run, problems: tuple[Problem, ...]) -> None:
    now = timezone.now()
    found = [{"path": p.path, "line": p.line, "column": p.column, "message": cleaned(p.message)} for p in problems]
    ended = {"state": RunState.ENDED, "conclusion": RunConclusion.STARTUP_FAILURE, "ended_at": now, "deadline_at": None}
    write(run, problems=found, **ended)
    events.record("run_ended", run=run, to_state=RunState.ENDED, actor=run.actor, detail="Startup failure")

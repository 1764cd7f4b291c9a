"""How do workflows with a workflow_run trigger learn of another run? By a task of the transaction that moved it."""

from __future__ import annotations

from django_q.tasks import async_task

from ci.models import Run, Workflow


def announce(run: Run, action: str) -> None:
    """Say that `run` was requested, is in_progress or has completed; only where some workflow listens."""
    listening = Workflow.objects.filter(
        repository=run.repository_id, on_default_branch=True, enabled=True, events__contains=["workflow_run"]
    )
    if listening.exists():
        async_task("ci.lifecycle.tasks.fire_workflow_run", run.pk, run.attempt, action)

"""What may be done later, and twice? The tasks that django-q2 runs, each idempotent: delivery is at least once."""

from __future__ import annotations

import contextlib

from django.utils import timezone

from ci.lifecycle import artifact_sweeps, caches, pushes, transitions, workflow_files, workflow_runs
from ci.lifecycle.errors import NotFound
from ci.storage import blob_orphans, log_orphans, logs


def plan_push(push_id: int) -> None:
    if not pushes.is_planned(push_id):  # by the call that received it, as nearly all are
        pushes.plan_push(push_id)


def remember_default_branch(repository_id: int) -> None:
    workflow_files.remember_default_branch(repository_id)


def fire_workflow_run(run_id: int, attempt: int, action: str) -> None:
    workflow_runs.fire_for(run_id, attempt=attempt, action=action)


def settle_group(group_id: int) -> None:
    transitions.settle(group_id)


def break_circle(group_id: int) -> None:
    transitions.break_circle(group_id)


def remove_orphaned_logs() -> None:
    log_orphans.remove_orphans()


def remove_orphaned_blobs() -> None:
    blob_orphans.remove_orphans()
    blob_orphans.remove_orphaned_files(turn=timezone.now().hour)


def tidy_artifacts() -> None:
    artifact_sweeps.tidy_artifacts()


def evict_caches(repository_id: int) -> None:
    with contextlib.suppress(NotFound):  # deleted meanwhile
        caches.evict(repository_id)


def evict_stale_caches() -> None:
    caches.evict_stale()


def merge_log(job_id: int) -> None:
    logs.merge(job_id)

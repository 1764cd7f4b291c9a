"""How does a run go on that waited for somebody with write access?"""

from __future__ import annotations

from typing import Any

from ci.lifecycle import events
from ci.lifecycle.errors import Conflict
from ci.lifecycle.transitions.create_run import enter
from ci.lifecycle.transitions.guard import check_version, guarded, lock_group, lock_run
from ci.lifecycle.transitions.moves import write
from ci.models import Run


@guarded
def approve_run(*, run_id: int, actor: Any, version: int | None = None) -> None:
    """Let a run go that was held for approval. Raises NotFound, Conflict."""
    group_id = Run.objects.filter(pk=run_id).values_list("concurrency_group_id", flat=True).first()
    if group_id is not None:
        lock_group(group_id)
    run = lock_run(run_id)
    check_version(run, version)
    if run.is_ended or not run.approval_pending:
        raise Conflict(f"{run} does not wait for an approval.")
    write(run, approval_pending=False)
    events.record("approved", run=run, from_state=run.state, to_state=run.state, actor=actor)
    enter(run)

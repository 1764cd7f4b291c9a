"""How is a workflow disabled, so that no event starts it, and enabled again?"""

from __future__ import annotations

from typing import Any

from ci.lifecycle import events
from ci.lifecycle.errors import Conflict, NotFound
from ci.lifecycle.transitions.guard import guarded
from ci.models import Workflow


@guarded
def enable_workflow(*, workflow_id: int, enabled: bool, actor: Any) -> Workflow:
    """Runs that there are already go on; a schedule's times pass meanwhile. The caller has checked that `actor` may
    write.

    Raises NotFound, and Conflict where it is so already.
    """
    rows = Workflow.objects.select_for_update(of=("self",), no_key=True).select_related("repository__owner")
    workflow = rows.filter(pk=workflow_id).first()
    if workflow is None:
        raise NotFound("There is no such workflow any more.")
    if workflow.enabled == enabled:
        raise Conflict(f"{workflow.name} is {'enabled' if enabled else 'disabled'} already.")
    workflow.enabled = enabled
    workflow.save(update_fields=["enabled"])
    events.record(
        "workflow_enabled" if enabled else "workflow_disabled",
        from_state="disabled" if enabled else "enabled",
        to_state="enabled" if enabled else "disabled",
        actor=actor,
        detail=f"{workflow.path} of {workflow.repository}",
    )
    return workflow

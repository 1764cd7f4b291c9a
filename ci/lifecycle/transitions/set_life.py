"""How does a whole runner set go away, or come back after it was parked? Each step can be repeated, and resumed."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from ci.lifecycle import events
from ci.lifecycle.errors import Conflict
from ci.lifecycle.transitions.deadlines import release_from_runner
from ci.lifecycle.transitions.guard import check_version, guarded, lock_set
from ci.lifecycle.transitions.moves import write
from ci.models import ACTIVE_STATES, Job, RunnerSet


def delete_set(*, set_id: int, actor: Any, version: int | None = None, force: bool = False) -> None:
    """Begin to delete a set: it takes no job any more, its idle runners go, then the busy ones, then the set itself.

    Busy ones end their jobs first; with `force` their jobs are lost at once, also where the deletion has begun before.
    Raises NotFound, Conflict.
    """
    _begin_deleting(set_id=set_id, actor=actor, version=version, again=force)
    if force:
        active = Job.objects.filter(runner__runner_set=set_id, state__in=ACTIVE_STATES).order_by("run_id", "pk")
        for job_id, runner_id in list(active.values_list("pk", "runner_id")):
            why = f"{actor.get_username()} deleted its runner set"
            release_from_runner(job_id=job_id, runner_id=runner_id, why=why)


@guarded
def _begin_deleting(*, set_id: int, actor: Any, version: int | None, again: bool) -> None:
    runner_set = lock_set(set_id)
    check_version(runner_set, version)
    if runner_set.phase == RunnerSet.Phase.DELETING:
        if again:
            return
        raise Conflict(f"{runner_set} is being deleted already.")
    before = runner_set.phase
    write(runner_set, phase=RunnerSet.Phase.DELETING, deleting_at=timezone.now())
    events.record(
        "runner_set_deleting",
        runner_set=runner_set,
        from_state=before,
        to_state=RunnerSet.Phase.DELETING,
        actor=actor,
    )
    events.wake_set(set_id)


@guarded
def recover_set(*, set_id: int, actor: Any, version: int | None = None) -> None:
    """Let a parked set start runners again: its runner was renewed where the server cannot see it, as an image's tag.

    What the runners of before say or said of their version does not count any more. Raises NotFound, Conflict.
    """
    runner_set = lock_set(set_id)
    check_version(runner_set, version)
    if runner_set.phase != RunnerSet.Phase.OUTDATED:
        raise Conflict(f"{runner_set} is not parked.")
    write(
        runner_set,
        phase=RunnerSet.Phase.RUNNING,
        parked_at=None,
        trouble="",
        troubled_until=None,
        spec_revision=runner_set.spec_revision + 1,
    )
    events.record(
        "runner_set_recovered",
        runner_set=runner_set,
        from_state=RunnerSet.Phase.OUTDATED,
        to_state=RunnerSet.Phase.RUNNING,
        actor=actor,
    )
    events.wake_set(set_id)

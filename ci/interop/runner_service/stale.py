"""What is a runner told of a task that it has no longer, or never had?"""

from __future__ import annotations

from ci.interop.connect_errors import ConnectError
from ci.lifecycle.errors import NotFound
from ci.lifecycle.transitions import Holder
from ci.models import Job


def check_held_before(job_id: int, holder: Holder) -> None:
    """After a call was refused: returns where the task was taken back, so that it is over for whoever had it.

    Raises ConnectError for another runner's task, NotFound for one that was never given.
    """
    now = Job.objects.filter(pk=job_id).values_list("runner_id", "assignment").first()
    if now is None or holder.assignment > now[1]:
        raise NotFound("There is no such task.")
    if holder.assignment == now[1] and now[0] is not None and now[0] != holder.runner_id:
        raise ConnectError("internal", "invalid runner for task")  # as Forgejo and Gitea have it

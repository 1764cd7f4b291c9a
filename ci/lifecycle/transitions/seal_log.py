"""When is a log complete? When its runner says that there is no more; nothing is added from then on."""

from __future__ import annotations

from django_q.tasks import async_task

from ci.lifecycle.transitions.guard import Proof, check_token, guarded, lock_job
from ci.models import Conclusion, Job, Step, StepState
from ci.storage import logs


@guarded
def seal_log(*, job_id: int, token: Proof) -> int:
    """Close the log; returns how many lines it has. A repeat changes nothing.

    A running job's may be closed too: its end may come after its last line. Raises NotFound, Unauthenticated.
    """
    _, job = lock_job(job_id)
    check_token(job, token)
    if not logs.is_sealed(job.pk):
        logs.seal(job.pk)
        settle_sealed_log(job)
    return logs.length(job.pk)


def settle_sealed_log(job: Job) -> None:
    """Of a locked job: once it has ended and its log is closed, the last step gets the lines that came after its end,
    and the lines are merged."""
    if not job.is_ended or not logs.is_sealed(job.pk):
        return
    ended = Step.objects.filter(job=job, state=StepState.ENDED).exclude(conclusion=Conclusion.SKIPPED)
    last = ended.order_by("-number").first()
    if last is not None:
        last.line_count = max(last.line_count, logs.length(job.pk) - last.first_line)
        last.save(update_fields=["line_count"])
    async_task("ci.lifecycle.tasks.merge_log", job.pk)

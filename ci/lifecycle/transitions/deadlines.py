"""What happens to a job that somebody let wait too long? Each verb looks again under the lock: most are too late."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone

from ci.lifecycle.errors import Conflict
from ci.lifecycle.transitions.advance import advance
from ci.lifecycle.transitions.guard import check_version, guarded, lock_job
from ci.lifecycle.transitions.moves import ask_to_stop, end, lose_runner, queue
from ci.lifecycle.transitions.stopping import stop
from ci.models import ACTIVE_STATES, CancelReason, Conclusion, Heartbeat, Job, JobState, Step
from ci.models import StepState as StepStates


@guarded
def act_on_deadline(*, job_id: int) -> str:
    """Whatever this job's passed deadline asks for; returns the name of what was done, "" when nothing was due."""
    run, job = lock_job(job_id)
    if job.is_ended or job.deadline_at is None or job.deadline_at > timezone.now():
        return ""
    if job.state == JobState.QUEUED:
        done = _give_up_queueing(job)
    elif job.state == JobState.ASSIGNED:
        done = _cancel_assignment(job, f"{_runner(job)} did not acknowledge it in {settings.ACKNOWLEDGE_SECONDS} s")
    elif job.cancel_reason:
        done = _force_cancel(job)
    else:
        done = _time_out(job)
    advance(run)
    return done


def _give_up_queueing(job: Job) -> str:
    note = f"No runner took it in {settings.QUEUE_SECONDS / 3600:g} h."
    stop(job, CancelReason.QUEUE_TIMEOUT, note=note)
    return "queue_timeout"


def _cancel_assignment(job: Job, why: str) -> str:
    """assigned -> queued for another runner, or ended if a cancel came first; nothing of the assignment stays."""
    if job.runner is not None:
        # First, or the end of its job would be taken for a good end of the runner.
        lose_runner(job.runner, f"Its job was taken back: {why}.")
    if job.cancel_reason:
        end(job, Conclusion.CANCELLED, kind="cancelled", note=f"{CancelReason(job.cancel_reason).label}; {why}.")
    else:
        queue(job, kind="requeued", detail=why)
    return "cancel_assignment"


def _time_out(job: Job) -> str:
    ask_to_stop(job, CancelReason.TIME_BUDGET)
    return "time_out"


def _force_cancel(job: Job) -> str:
    reason = CancelReason(job.cancel_reason).label
    note = f"{reason}; it was still running {job.grace.total_seconds():.0f} s later and was ended."
    end(job, Conclusion.CANCELLED, kind="cancelled_by_force", note=note)
    return "force_cancel"


@guarded
def lose_job(*, job_id: int) -> str:
    """When heartbeats stop: back to the queue if no step had begun, else ended. "" when one arrived meanwhile."""
    run, job = lock_job(job_id)
    if job.state != JobState.RUNNING:
        return ""
    heartbeat = Heartbeat.objects.filter(job=job).first()
    last = heartbeat.at if heartbeat else job.started_at or job.created_at
    silence = (timezone.now() - last).total_seconds()
    if silence < settings.HEARTBEAT_SECONDS:
        return ""
    _lose(job, f"{_runner(job)} was lost: {silence:.0f} s without a heartbeat")
    advance(run)
    return "lost"


@guarded
def release_from_runner(*, job_id: int, runner_id: int, why: str) -> None:
    """Its runner is being removed: the job is lost as if its heartbeats had stopped."""
    run, job = lock_job(job_id)
    if job.runner_id != runner_id or job.state not in ACTIVE_STATES:
        return
    if job.state == JobState.ASSIGNED:
        _cancel_assignment(job, why)
    else:
        _lose(job, why)
    advance(run)


@guarded
def requeue_job(*, job_id: int, actor: object, version: int | None = None) -> None:
    """The operator takes an assigned job, or a running one whose steps have not begun, back from its runner.

    Raises NotFound, Conflict.
    """
    run, job = lock_job(job_id)
    check_version(job, version)
    if job.state not in ACTIVE_STATES:
        raise Conflict(f"{job} is {job.get_state_display().lower()}: only an assigned or running job can be requeued.")
    if job.cancel_reason:
        raise Conflict(f"{job} is being cancelled: it cannot be requeued.")
    if _has_begun(job):
        raise Conflict(f"{job} has begun its steps: cancel it and re-run it instead.")
    _cancel_assignment(job, f"{actor} requeued it")
    advance(run)


def _lose(job: Job, why: str) -> None:
    if job.runner is not None:
        lose_runner(job.runner, f"{why}.")
    if job.cancel_reason:
        end(job, Conclusion.CANCELLED, kind="lost", note=f"{CancelReason(job.cancel_reason).label}; {why}.")
    elif _has_begun(job):
        end(job, Conclusion.FAILURE, kind="lost", note=f"{why}.")
    else:
        queue(job, kind="requeued", detail=why)


def _has_begun(job: Job) -> bool:
    """Whether a step of the workflow's own has begun; "Set up job", the first, may be done again elsewhere."""
    return Step.objects.filter(job=job, number__gt=1).exclude(state=StepStates.PENDING).exists()


def _runner(job: Job) -> str:
    return f"runner {job.runner_name}"

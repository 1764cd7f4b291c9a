"""Every guarded write to runs, jobs and runners, one file a verb.

Lock order: concurrency group, then runs by id, then a run's jobs by id, then runner. A claim locks its runner and one
job with SKIP LOCKED and no run, so it can neither wait on nor deadlock with a cancel. Scaling locks a runner set, and
of its runners only those that nobody else has locked: it waits for no runner, and nothing waits for a set but scaling
and, with its runner locked, a launch of a set in trouble.
"""

from ci.lifecycle.transitions.append_log import append_log
from ci.lifecycle.transitions.approve_run import approve_run
from ci.lifecycle.transitions.cancel import act_on_run_deadline, cancel_job, cancel_run
from ci.lifecycle.transitions.circles import break_circle
from ci.lifecycle.transitions.claim import Assignment, claim, fail_unpreparable, repeat_claim
from ci.lifecycle.transitions.complete import JobEnd, complete
from ci.lifecycle.transitions.concurrency import settle
from ci.lifecycle.transitions.create_run import Cause, create_run, create_startup_failure
from ci.lifecycle.transitions.deadlines import act_on_deadline, lose_job, release_from_runner, requeue_job
from ci.lifecycle.transitions.dying import Stop
from ci.lifecycle.transitions.guard import Holder, Proof
from ci.lifecycle.transitions.heartbeat import HeartbeatAnswer, heartbeat
from ci.lifecycle.transitions.launching import Begun, begin_launch, came_up, launch_failed, launch_unanswered, launched
from ci.lifecycle.transitions.process_end import process_ended, process_forced, process_stopped
from ci.lifecycle.transitions.rerun import rerun
from ci.lifecycle.transitions.retire_runner import retire_runner
from ci.lifecycle.transitions.runner_phase import finish_runner, start_runner
from ci.lifecycle.transitions.scale_set import Scaled, scale_set
from ci.lifecycle.transitions.seal_log import seal_log
from ci.lifecycle.transitions.set_life import delete_set, recover_set
from ci.lifecycle.transitions.update_steps import update_steps

__all__ = [
    "Assignment",
    "Begun",
    "Cause",
    "HeartbeatAnswer",
    "Holder",
    "JobEnd",
    "Proof",
    "Scaled",
    "Stop",
    "act_on_deadline",
    "act_on_run_deadline",
    "append_log",
    "approve_run",
    "begin_launch",
    "break_circle",
    "came_up",
    "cancel_job",
    "cancel_run",
    "claim",
    "complete",
    "create_run",
    "create_startup_failure",
    "delete_set",
    "fail_unpreparable",
    "finish_runner",
    "heartbeat",
    "launch_failed",
    "launch_unanswered",
    "launched",
    "lose_job",
    "process_ended",
    "process_forced",
    "process_stopped",
    "recover_set",
    "release_from_runner",
    "repeat_claim",
    "requeue_job",
    "rerun",
    "retire_runner",
    "scale_set",
    "seal_log",
    "settle",
    "start_runner",
    "update_steps",
]

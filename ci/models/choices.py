"""Which states exist, and which of them are ends?"""

from django.db import models


class JobState(models.TextChoices):
    BLOCKED = "blocked", "Blocked"
    QUEUED = "queued", "Queued"
    ASSIGNED = "assigned", "Assigned"
    RUNNING = "running", "Running"
    ENDED = "ended", "Ended"


class RunState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    ENDED = "ended", "Ended"


class StepState(models.TextChoices):
    PENDING = "pending", "Pending"
    RUNNING = "running", "Running"
    ENDED = "ended", "Ended"


class Conclusion(models.TextChoices):
    SUCCESS = "success", "Success"
    FAILURE = "failure", "Failure"
    CANCELLED = "cancelled", "Cancelled"
    SKIPPED = "skipped", "Skipped"


class RunConclusion(models.TextChoices):
    SUCCESS = "success", "Success"
    FAILURE = "failure", "Failure"
    CANCELLED = "cancelled", "Cancelled"
    SKIPPED = "skipped", "Skipped"
    STARTUP_FAILURE = "startup_failure", "Startup failure"


class CancelReason(models.TextChoices):
    OWNER = "owner", "Cancelled by a person"
    FAIL_FAST = "fail_fast", "A sibling of the matrix failed"
    SUPERSEDED = "superseded", "A newer run took its concurrency group"
    TIME_BUDGET = "time_budget", "It ran longer than its timeout"
    LOG_LIMIT = "log_limit", "Its log reached the limit"
    QUEUE_TIMEOUT = "queue_timeout", "No runner took it in time"


class Hold(models.TextChoices):
    """Why a blocked job is not queued yet."""

    NEEDS = "needs", "Waits for the jobs it needs"
    MAX_PARALLEL = "max_parallel", "Waits for a place under max-parallel"
    CONCURRENCY = "concurrency", "Waits for its concurrency group"
    RUN = "run", "Its run waits for a concurrency group or an approval"
    CALLED_GROUP = "called_group", "Waits for the concurrency group of the workflow that it calls"
    CALLED = "called", "Waits for the jobs of the workflow that it calls"


class DeploymentState(models.TextChoices):
    """GitHub's words. Inactive: a later one succeeded in the same environment, or it never came to deploy."""

    WAITING = "waiting", "Waiting"
    QUEUED = "queued", "Queued"
    IN_PROGRESS = "in_progress", "In progress"
    SUCCESS = "success", "Success"
    FAILURE = "failure", "Failure"
    INACTIVE = "inactive", "Inactive"


class RunnerPhase(models.TextChoices):
    PENDING = "pending", "Idle"
    RUNNING = "running", "Busy"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    OUTDATED = "outdated", "Outdated"


TERMINAL_PHASES = frozenset({RunnerPhase.SUCCEEDED, RunnerPhase.FAILED, RunnerPhase.OUTDATED})
# A blocked job that is in its turn all the same: it has its place under max-parallel.
IN_TURN = (Hold.CONCURRENCY, Hold.CALLED_GROUP, Hold.CALLED)
ACTIVE_STATES = (JobState.ASSIGNED, JobState.RUNNING)

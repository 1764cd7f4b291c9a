"""Tables, choices, constraints and read-only properties. Nothing here writes: ci.lifecycle does."""

from ci.models.artifact import Artifact, ArtifactFile, StoragePolicy
from ci.models.blob import Blob, BlobPart
from ci.models.cache import CacheEntry
from ci.models.choices import (
    ACTIVE_STATES,
    IN_TURN,
    TERMINAL_PHASES,
    CancelReason,
    Conclusion,
    DeploymentState,
    Hold,
    JobState,
    RunConclusion,
    RunnerPhase,
    RunState,
    StepState,
)
from ci.models.event import Event
from ci.models.job import Heartbeat, Job, Step
from ci.models.log import Log, LogChunk
from ci.models.measure import JobMeasure, Measured, MeasureSum
from ci.models.run import Run, RunAttempt
from ci.models.runner import LabelSet, LaunchAttempt, RegistrationToken, Runner
from ci.models.runner_set import RunnerSet, RunnerSetSample
from ci.models.scope import Scope
from ci.models.secret import Secret, Variable
from ci.models.signing_key import SigningKey
from ci.models.workflow import ConcurrencyGroup, Environment, Schedule, Workflow

__all__ = [
    "ACTIVE_STATES",
    "IN_TURN",
    "TERMINAL_PHASES",
    "Artifact",
    "ArtifactFile",
    "Blob",
    "BlobPart",
    "CacheEntry",
    "CancelReason",
    "Conclusion",
    "ConcurrencyGroup",
    "DeploymentState",
    "Environment",
    "Event",
    "Heartbeat",
    "Hold",
    "Job",
    "JobMeasure",
    "JobState",
    "LabelSet",
    "LaunchAttempt",
    "Log",
    "LogChunk",
    "MeasureSum",
    "Measured",
    "RegistrationToken",
    "Run",
    "RunAttempt",
    "RunConclusion",
    "RunState",
    "Runner",
    "RunnerPhase",
    "RunnerSet",
    "RunnerSetSample",
    "Schedule",
    "Scope",
    "Secret",
    "SigningKey",
    "Step",
    "StepState",
    "StoragePolicy",
    "Variable",
    "Workflow",
]

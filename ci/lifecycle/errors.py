"""What can a transition answer instead of moving?"""

from __future__ import annotations

from collections.abc import Mapping


class LifecycleError(Exception):
    """`code` is for programs and stays; `detail` is one sentence for people."""

    code = "error"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Unauthenticated(LifecycleError):
    code = "unauthenticated"

    def __init__(self, detail: str = "This token is unknown, was replaced or was revoked.") -> None:
        super().__init__(detail)


class NotAllowed(LifecycleError):
    code = "not_allowed"


class NotFound(LifecycleError):
    code = "not_found"


class Expired(NotFound):
    """It was there and is shown still, but its bytes are gone."""

    code = "expired"


class Conflict(LifecycleError):
    """Somebody was faster, or there is nothing to do."""

    code = "conflict"


class AlreadyExists(Conflict):
    """Something finished has this name, or somebody else is making it; it is not replaced."""

    code = "already_exists"


class RunnerOutdated(Conflict):
    """The forge takes no runner of this version."""

    code = "runner_outdated"


class InvalidInput(LifecycleError):
    """`errors` maps a field to what is wrong with it; the field "" stands for all of them together."""

    code = "invalid"

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" if name else text for name, text in errors.items()))
        self.errors = dict(errors)


class UnfitJob(LifecycleError):
    """No runner of this kind can carry the job out, and the workflow's author can read why."""

    code = "unfit_job"


class JobEnded(LifecycleError):
    """The job has ended: this is how."""

    code = "job_ended"

    def __init__(self, conclusion: str, reason: str) -> None:
        super().__init__(f"The job has ended: {conclusion}{f', {reason}' if reason else ''}.")
        self.conclusion = conclusion
        self.reason = reason


class LogOffset(LifecycleError):
    """The lines would leave a hole; the next one expected is `next_offset`."""

    code = "log_offset"

    def __init__(self, next_offset: int) -> None:
        super().__init__(f"The log has {next_offset} lines: send from that offset on.")
        self.next_offset = next_offset


class LogLimit(LifecycleError):
    """The log is full or sealed; what fitted is kept, up to `next_offset`."""

    code = "log_limit"

    def __init__(self, next_offset: int, detail: str = "The log has reached its limit.") -> None:
        super().__init__(detail)
        self.next_offset = next_offset

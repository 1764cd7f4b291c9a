"""What can every launcher do, whatever it starts its runners on?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

# No call of a launcher takes longer, whatever its engine does: whoever waits for one may hold up a whole set.
LIMIT_SECONDS = 30.0
# Engines that do not say themselves when to come again.
RETRY_SECONDS = 30.0
MAX_HANDLE = 500
MAX_REASON = 500

# What `python -m ci.runner once` reads; the token goes this way, or by a file or secret, and never on a command line.
URL_VARIABLE = "FORGE_URL"
TOKEN_VARIABLE = "FORGE_RUNNER_TOKEN"  # noqa: S105 (a variable's name)
# In place of the token, the path of a file that holds it: whoever may look at a container reads its environment. The
# runner takes the file away once it has read it, where it can.
TOKEN_FILE_VARIABLE = "FORGE_RUNNER_TOKEN_FILE"  # noqa: S105 (a variable's name)
NAME_VARIABLE = "FORGE_RUNNER_NAME"
LABELS_VARIABLE = "FORGE_RUNNER_LABELS"

State = Literal["starting", "running", "exited"]
_IDENTITY = re.compile(r"forge-([1-9][0-9]{0,17})-([1-9][0-9]{0,17})-([1-9][0-9]{0,8})")


class LaunchError(Exception):
    """An engine did not do what it was asked; `reason` is a sentence for the owner's page, without any secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:MAX_REASON])
        self.reason = reason[:MAX_REASON]


class TransientLaunchError(LaunchError):
    """It may work later: the engine is away, slow or full. `retry_after`: seconds until another try makes sense."""

    def __init__(self, reason: str, retry_after: float = RETRY_SECONDS) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class PermanentLaunchError(LaunchError):
    """It will never work as it was asked for: a wrong template, an image that does not exist, a missing right."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What to start."""

    identity: str  # as `identity_of` makes it: unique for ever within an installation
    installation: str  # so that `list` finds only ours
    set_id: int
    runner_id: int
    attempt: int
    url: str  # of the server
    token: str = field(repr=False)  # frr_…: never on a command line, never logged
    name: str
    labels: tuple[str, ...]
    template: Mapping[str, Any]

    def environment(self) -> dict[str, str]:
        """What the runner's process reads of this; holds the token."""
        return {
            URL_VARIABLE: self.url,
            TOKEN_VARIABLE: self.token,
            NAME_VARIABLE: self.name,
            LABELS_VARIABLE: ",".join(self.labels),
        }


@dataclass(frozen=True, kw_only=True)
class Process:
    """What was found."""

    identity: str
    handle: str
    set_id: int
    runner_id: int
    attempt: int
    state: State
    exit_code: int | None  # None while it is not exited, and where nobody saw how it ended
    reason: str  # "" or a human sentence: "out of memory", "image x could not be pulled: …"


class Launcher(Protocol):
    """
    Starts and ends runner processes of one installation, and finds them again; keeps nothing in memory that counts.

    Safe to use from several threads and processes at once. Every call ends within LIMIT_SECONDS and raises
    TransientLaunchError where its engine gave no answer by then.
    """

    def start(self, launch: Launch) -> str:
        """
        The handle (at most MAX_HANDLE characters) of the one process with this identity, started where there is none.

        The same identity again: the same handle and no second process, also where the first has ended meanwhile. Does
        not wait until it runs. Raises TransientLaunchError, PermanentLaunchError.
        """
        ...

    def poll(self, handle: str) -> Process | None:
        """The very process of the handle; None where it is gone and nothing is known of it. Raises LaunchError."""
        ...

    def stop(self, handle: str, *, force: bool) -> None:
        """
        Ask the very process of the handle to end (SIGTERM: a job in hand may end first), or with `force` kill it with
        all its descendants.

        Asked again, ended or gone: nothing happens. Another process that got its number or name is never touched.
        Raises LaunchError.
        """
        ...

    def list(self, set_id: int | None = None) -> list[Process]:
        """Every process of this installation, or of one of its sets, by identity; ended ones while they are known.
        Raises LaunchError."""
        ...


# In every launcher's module: `from_settings(*, installation)` and `check_template(template)`. The second names what is
# wrong with a template, a sentence each and none where all is right; it asks no engine, so that a form may call it.
FromSettings = Callable[..., Launcher]
CheckTemplate = Callable[[Mapping[str, Any]], list[str]]


def identity_of(*, set_id: int, runner_id: int, attempt: int) -> str:
    """The name of one attempt to launch one runner; fits a container's, a Pod's and a file's name."""
    return f"forge-{set_id}-{runner_id}-{attempt}"


def read_identity(identity: str) -> tuple[int, int, int] | None:
    """Set, runner and attempt of an identity; None where it is none of ours."""
    found = _IDENTITY.fullmatch(identity)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None

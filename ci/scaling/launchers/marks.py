"""By which marks are this installation's containers and Pods found again?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from ci.scaling.launchers.protocol import Launch, identity_of

# Labels of containers, and of Pods and Secrets (Kubernetes docs, "Labels and Selectors": prefix/name, 63 characters).
INSTALLATION = "forge-ci/installation"
SET = "forge-ci/set"
RUNNER = "forge-ci/runner"
ATTEMPT = "forge-ci/attempt"
_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def owner(installation: str) -> str:
    """The value of the label INSTALLATION: the installation itself where it may be a label, else its digest."""
    return installation if _VALUE.fullmatch(installation) else hashlib.sha256(installation.encode()).hexdigest()[:32]


def name(identity: str, *, installation: str) -> str:
    """A name for the engine: two installations may share one, and both have a first runner of a first set."""
    return f"{identity}-{hashlib.sha256(installation.encode()).hexdigest()[:8]}"


def labels(launch: Launch) -> dict[str, str]:
    return {
        INSTALLATION: owner(launch.installation),
        SET: str(launch.set_id),
        RUNNER: str(launch.runner_id),
        ATTEMPT: str(launch.attempt),
    }


def selector(*, installation: str, set_id: int | None) -> list[str]:
    """`label=value` of what belongs to the installation, or to one of its sets."""
    wanted = [f"{INSTALLATION}={owner(installation)}"]
    return wanted if set_id is None else [*wanted, f"{SET}={set_id}"]


def read(found: Mapping[str, str] | None, *, installation: str) -> tuple[int, int, int] | None:
    """Set, runner and attempt of something with these labels; None where it is not this installation's."""
    known = found or {}
    numbers = [known.get(label, "") for label in (SET, RUNNER, ATTEMPT)]
    if known.get(INSTALLATION) != owner(installation) or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    return int(numbers[0]), int(numbers[1]), int(numbers[2])


def identity(numbers: tuple[int, int, int]) -> str:
    return identity_of(set_id=numbers[0], runner_id=numbers[1], attempt=numbers[2])

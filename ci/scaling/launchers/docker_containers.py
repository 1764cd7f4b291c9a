"""What does a container's state say of the runner in it?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from docker import APIClient

from ci.scaling.launchers import docker_errors, marks
from ci.scaling.launchers.protocol import MAX_REASON, Process, State
from ci.scaling.launchers.reasons import ended_because

# Docker's words for a container's state, and Podman's own ones; every other one means that it has ended.
_STATES: dict[str, State] = {
    "created": "starting", "configured": "starting", "initialized": "starting",
    "running": "running", "paused": "running", "restarting": "running", "stopping": "running",
}  # fmt: skip
_LAST_LINES = 5


def process(
    numbers: tuple[int, int, int], handle: str, state: State, *, exit_code: int | None = None, reason: str = ""
) -> Process:
    return Process(
        identity=marks.identity(numbers),
        handle=handle,
        set_id=numbers[0],
        runner_id=numbers[1],
        attempt=numbers[2],
        state=state,
        exit_code=exit_code,
        reason=reason[:MAX_REASON],
    )


def state_of(word: str) -> State:
    return _STATES.get(word.lower(), "exited")


def state(found: Mapping[str, Any]) -> State:
    """Of an inspected container."""
    word = str(found["State"].get("Status", ""))
    if word == "created" and found["State"].get("Error"):
        return "exited"  # its start failed, and it stays as it was made
    return state_of(word)


def end(client: APIClient, found: Mapping[str, Any]) -> tuple[int, str]:
    """Exit code and reason of an inspected container that has ended."""
    exit_code = int(found["State"].get("ExitCode", 0))
    if error := found["State"].get("Error"):
        return exit_code, f"the container could not be started: {error}"
    if exit_code == 0:
        return 0, ""
    lines = _last_lines(client, str(found["Id"]))
    return exit_code, ended_because(exit_code, out_of_memory=bool(found["State"].get("OOMKilled")), last_lines=lines)


def starting_then_newest(summary: Mapping[str, Any]) -> tuple[bool, int]:
    """To sort by, of a container as a list has it."""
    made = summary.get("Created")
    return state_of(str(summary["State"])) != "starting", -made if isinstance(made, int) else 0


def ended_before(found: Mapping[str, Any], moment: datetime) -> bool:
    if state(found) != "exited":
        return False
    # Year 1 is the engines' word for never: one whose start failed has no end, and was made before that.
    ended = _time(found["State"].get("FinishedAt")) or _time(found.get("Created"))
    return ended is not None and ended < moment


def _time(text: Any) -> datetime | None:
    try:
        read = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return read if read.year > 1 and read.tzinfo is not None else None


def _last_lines(client: APIClient, container_id: str) -> str:
    try:
        written = client.logs(container_id, tail=_LAST_LINES)
    except docker_errors.ERRORS:
        return ""  # not every log driver can be read
    return bytes(written).decode(errors="replace") if isinstance(written, bytes | bytearray) else ""

"""Why did a runner's process end? In words for the owner's page."""

from __future__ import annotations

import signal

from ci.scaling.launchers.protocol import MAX_REASON

OUTDATED = 7
# How shells and engines tell of a death by signal: 128 and its number.
_BY_SIGNAL = 128
KILLED = _BY_SIGNAL + signal.SIGKILL
_MEANINGS = {
    1: "the forge refused the runner",
    2: "its configuration is wrong",
    OUTDATED: "this version of the runner is outdated: the forge does not take it any more",
    126: "the runner's program may not be executed",
    127: "the runner's program was not found",
}


def ended_because(exit_code: int, *, out_of_memory: bool = False, last_lines: str = "") -> str:
    """
    A sentence, empty for a clean end. `last_lines`: what the process wrote last; its end counts most.

    Source of the codes: POSIX, "Exit Status for Commands"; 7 is the runner's own, as that of GitHub's runner.
    """
    if exit_code == 0:
        return ""
    reason = f"exit code {exit_code}"
    if out_of_memory:
        reason = f"out of memory: the runner or its job used more than there is (exit code {exit_code})"
    elif exit_code in _MEANINGS:
        reason = f"{_MEANINGS[exit_code]} (exit code {exit_code})"
    elif exit_code == KILLED:
        reason = "killed from outside, or because memory ran out (exit code 137)"
    elif exit_code > _BY_SIGNAL:
        reason = f"ended by {_signal_name(exit_code - _BY_SIGNAL)} (exit code {exit_code})"
    tail = " / ".join(line.strip() for line in last_lines.splitlines() if line.strip())
    room = MAX_REASON - len(reason) - len(": ")
    return f"{reason}: {tail[-room:]}" if tail and room > 0 else reason


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

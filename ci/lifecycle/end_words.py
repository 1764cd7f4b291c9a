"""How did a runner's process end, for everybody who may read its job? In words of ours: never in what it wrote."""

from __future__ import annotations

import signal

# The exit code by which a runner says that its version is not served any more (actions/runner's Constants).
OUTDATED_CODE = 7
VANISHED = "its process vanished"
STOPPED = "it was stopped"
# How shells and engines tell of a death by signal (POSIX, "Exit Status for Commands").
_BY_SIGNAL = 128
# How the reasons of launchers begin, which go on with what a process or an engine said, and what is told of them.
_KNOWN = {
    VANISHED: VANISHED,
    STOPPED: STOPPED,
    "out of memory": "out of memory",
    "evicted from its node": "it was evicted from its node",
    "its node had no room for it": "its node had no room for it",
    "the Pod failed": "its Pod failed",
    "the init container ": "an init container failed",
    "the container could not be started": "its container could not be started",
    "killed from outside, or because memory ran out": "killed from outside, or because memory ran out",
    "nobody saw how it ended": "nobody saw how it ended",
}


def end_in_words(exit_code: int | None, reason: str) -> str:
    """`reason`: as a launcher gives it, for whoever administers the set; "" where it has none."""
    code = "" if exit_code is None else f"exit code {exit_code}"
    words = next((told for begin, told in _KNOWN.items() if reason.startswith(begin)), "") or _by_code(exit_code)
    return f"{words} ({code})" if words and code else words or code or "its engine does not say how it ended"


def _by_code(exit_code: int | None) -> str:
    if exit_code == OUTDATED_CODE:
        return "its version is outdated"
    if exit_code is None or exit_code <= _BY_SIGNAL:
        return ""
    try:
        return f"ended by {signal.Signals(exit_code - _BY_SIGNAL).name}"
    except ValueError:
        return ""

"""end_in_words: how a runner's process ended, for each reason of a launcher, without what anybody else wrote."""

from __future__ import annotations

from typing import Any

import pytest

from ci.lifecycle.end_words import STOPPED, VANISHED, end_in_words
from ci.scaling.launchers import local_end
from ci.scaling.launchers.kubernetes_pods import read
from ci.scaling.launchers.reasons import ended_because

WROTE = "/srv/secret"


def pod(phase: str = "Failed", *, init: dict[str, Any] | None = None, runner: Any = None, **status: str) -> Any:
    status_of_all: dict[str, Any] = {"phase": phase, **status}
    if init is not None:
        status_of_all["initContainerStatuses"] = [{"name": WROTE, "state": {"terminated": init}}]
    if runner is not None:
        status_of_all["containerStatuses"] = [{"name": "runner", "state": {"terminated": runner}}]
    return {"spec": {}, "status": status_of_all}


@pytest.mark.parametrize(
    ("exit_code", "told"),
    [
        (1, "exit code 1"),
        (3, "exit code 3"),
        (7, "its version is outdated (exit code 7)"),
        (126, "exit code 126"),
        (137, "killed from outside, or because memory ran out (exit code 137)"),
        (143, "ended by SIGTERM (exit code 143)"),
        (250, "exit code 250"),
    ],
)
def test_an_exit_code_is_told_without_the_last_lines(exit_code: int, told: str) -> None:
    reason = ended_because(exit_code, last_lines=f"cannot open {WROTE}\nout of memory")
    assert WROTE in reason
    assert end_in_words(exit_code, reason) == told


def test_want_of_memory_is_told() -> None:
    reason = ended_because(137, out_of_memory=True, last_lines=WROTE)
    assert end_in_words(137, reason) == "out of memory (exit code 137)"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (pod(init={"exitCode": 3, "message": WROTE}, phase="Pending"), "an init container failed"),
        (pod(reason="Evicted", message=WROTE), "it was evicted from its node"),
        (
            pod(reason="Evicted", message=WROTE, runner={"exitCode": 137, "message": WROTE}),
            "it was evicted from its node (exit code 137)",
        ),
        (pod(reason="OutOfcpu", message=WROTE), "its node had no room for it"),
        (pod(reason="Shutdown", message=WROTE), "its Pod failed"),
        (
            pod(runner={"exitCode": 128, "reason": "StartError", "message": WROTE}),
            "its container could not be started (exit code 128)",
        ),
        (
            pod(runner={"exitCode": 137, "reason": "OOMKilled", "message": WROTE}),
            "out of memory (exit code 137)",
        ),
    ],
)
def test_what_a_cluster_says_is_told_in_other_words(given: Any, told: str) -> None:
    state, exit_code, reason = read(given)
    assert (state, WROTE in reason) == ("exited", True)
    assert end_in_words(exit_code, reason) == told


@pytest.mark.parametrize("reason", [VANISHED, STOPPED])
def test_words_of_ours_are_told_as_they_are(reason: str) -> None:
    assert end_in_words(None, reason) == reason


def test_nothing_known_is_told_as_such() -> None:
    assert end_in_words(None, local_end._UNSEEN) == "nobody saw how it ended"
    assert end_in_words(None, f"something new: {WROTE}") == "its engine does not say how it ended"

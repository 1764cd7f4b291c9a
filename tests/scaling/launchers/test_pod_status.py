"""What does a Pod's status say of the runner in it? The words as clusters write them."""

from __future__ import annotations

from typing import Any

import pytest

from ci.scaling.launchers.kubernetes_pods import ended_at, parse_time, read


def _pod(*, init: list[dict[str, Any]] | None = None, **status: Any) -> dict[str, Any]:
    containers = [{"name": "runner", "image": "runner:1"}, {"name": "cache", "image": "cache:1"}]
    return {"spec": {"containers": containers, "initContainers": init or []}, "status": status}


def _runner(**state: Any) -> list[dict[str, Any]]:
    return [{"name": "cache", "state": {"running": {}}}, {"name": "runner", "state": state}]


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ({}, ("starting", None, "")),
        ({"phase": "Pending"}, ("starting", None, "")),
        (
            {"phase": "Pending", "containerStatuses": _runner(waiting={"reason": "ContainerCreating"})},
            ("starting", None, ""),
        ),
        # A container may run before the Pod's phase says so.
        ({"phase": "Pending", "containerStatuses": _runner(running={})}, ("running", None, "")),
        ({"phase": "Running"}, ("running", None, "")),
        ({"phase": "Unknown", "reason": "NodeLost"}, ("running", None, "")),
        # not set the phase to succeeded without pod termination status
        ({"phase": "Succeeded"}, ("running", None, "")),
        ({"phase": "Succeeded", "containerStatuses": _runner(terminated={"exitCode": 0})}, ("exited", 0, "")),
        # treat pod failed with runner container exit 0 as success
        (
            {"phase": "Failed", "reason": "Evicted", "containerStatuses": _runner(terminated={"exitCode": 0})},
            ("exited", 0, ""),
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "Pod ephemeral storage exceeded."},
            ("exited", None, "evicted from its node: Pod ephemeral storage exceeded."),
        ),
        # re-create pod on reason starting with OutOf
        (
            {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"},
            ("exited", None, "its node had no room for it (OutOfcpu): Node didn't have enough resource: cpu"),
        ),
        (
            {"phase": "Failed", "reason": "OutOfmemory", "message": "no"},
            ("exited", None, "its node had no room for it (OutOfmemory): no"),
        ),
        (
            {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active too long"},
            ("exited", None, "the Pod failed: DeadlineExceeded: Pod was active too long"),
        ),
        ({"phase": "Failed"}, ("exited", None, "the Pod failed: the cluster does not say why")),
    ],
)
def test_the_state_is_read(status: dict[str, Any], found: tuple[str, int | None, str]) -> None:
    assert read(_pod(**status)) == found


@pytest.mark.parametrize(
    ("terminated", "words"),
    [
        ({"exitCode": 137, "reason": "OOMKilled"}, "out of memory"),
        ({"exitCode": 7, "reason": "Error"}, "outdated"),
        ({"exitCode": 1, "message": "first\nthe last line"}, "the last line"),
        (
            {"exitCode": 128, "reason": "StartError", "message": 'exec: "x": not found'},
            'could not be started: exec: "x"',
        ),
        ({"exitCode": 127, "reason": "ContainerCannotRun"}, "could not be started"),
    ],
)
def test_an_exit_is_told_in_words(terminated: dict[str, Any], words: str) -> None:
    state, exit_code, reason = read(_pod(phase="Failed", containerStatuses=_runner(terminated=terminated)))
    assert (state, exit_code) == ("exited", terminated["exitCode"]) and words in reason


@pytest.mark.parametrize(
    ("waiting", "reason"),
    [
        (
            {"reason": "ImagePullBackOff", "message": "Back-off pulling image"},
            "image runner:1 could not be pulled: Back-off pulling image",
        ),
        ({"reason": "InvalidImageName"}, "image runner:1 could not be pulled: InvalidImageName"),
        (
            {"reason": "CreateContainerConfigError", "message": 'secret "x" not found'},
            'the container could not be made: secret "x" not found',
        ),
        ({"reason": "PodInitializing"}, ""),
    ],
)
def test_a_container_that_waits_says_what_for(waiting: dict[str, str], reason: str) -> None:
    assert read(_pod(phase="Pending", containerStatuses=_runner(waiting=waiting))) == ("starting", None, reason)


@pytest.mark.parametrize(
    ("restart", "found"),
    [
        (None, ("exited", None, "the init container setup failed: exit code 3: no")),
        ("Always", ("starting", None, "")),
    ],
    ids=["plain", "sidecar"],
)
def test_an_init_container_that_failed_ends_it_unless_it_is_started_again(restart: str | None, found: Any) -> None:
    spec = {"name": "setup"} | ({"restartPolicy": restart} if restart else {})
    ended = {"name": "setup", "state": {"terminated": {"exitCode": 3, "message": "no"}}}
    assert read(_pod(init=[spec], phase="Pending", initContainerStatuses=[ended])) == found


def test_times_are_read_and_nonsense_is_none() -> None:
    pod = _pod(containerStatuses=_runner(terminated={"exitCode": 0, "finishedAt": "2026-02-03T04:05:06Z"}))
    assert str(ended_at(pod)) == "2026-02-03 04:05:06+00:00"
    assert ended_at(_pod()) is None and parse_time("soon") is None and parse_time(None) is None

"""What does a Pod's status say of the runner in it?

Source of the words: Kubernetes docs, "Pod Lifecycle"; the kubelet's reasons as actions-runner-controller treats them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ci.scaling.launchers.kubernetes_template import RUNNER
from ci.scaling.launchers.protocol import State
from ci.scaling.launchers.reasons import ended_because

# Why containers wait: on their way, for an image, and else for something that somebody has to mend.
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})
_PULL_PROBLEMS = frozenset(
    {
        "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "InvalidImageName", "ErrImageNeverPull",
        "RegistryUnavailable", "SignatureValidationFailed",
    }
)  # fmt: skip
_NEVER_RAN = frozenset({"StartError", "ContainerCannotRun"})

Found = tuple[State, int | None, str]


def read(pod: Mapping[str, Any]) -> Found:
    """State, exit code and reason of the runner: its container counts, not the Pod, which sidecars may keep or fail."""
    status = pod.get("status") or {}
    runner = _status_of(status, RUNNER)
    if ended := runner.get("terminated"):
        return _ended(ended, status)
    if failed := _failed_init(pod):
        return "exited", None, failed
    if status.get("phase") == "Failed":
        return "exited", None, _failure_of_pod(status)
    # Without the container's own end even a Pod that succeeded is waited for: nobody knows yet how the runner ended.
    if "running" in runner or status.get("phase") in ("Running", "Succeeded", "Unknown"):
        return "running", None, ""
    return "starting", None, _hindrance(pod, runner)


def ended_at(pod: Mapping[str, Any]) -> datetime | None:
    """When the runner ended, where that is written down."""
    terminated = _status_of(pod.get("status") or {}, RUNNER).get("terminated") or {}
    return parse_time(terminated.get("finishedAt"))


def parse_time(text: Any) -> datetime | None:
    """A time of the API: RFC 3339 in UTC, whole seconds."""
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _ended(ended: Mapping[str, Any], status: Mapping[str, Any]) -> Found:
    exit_code = int(ended.get("exitCode", 0))
    if exit_code == 0:
        return "exited", 0, ""  # also where a sidecar made the Pod fail
    message = str(ended.get("message") or "")
    if ended.get("reason") in _NEVER_RAN:
        return "exited", exit_code, f"the container could not be started: {message or ended['reason']}"
    reason = ended_because(exit_code, out_of_memory=ended.get("reason") == "OOMKilled", last_lines=message)
    if status.get("phase") == "Failed" and status.get("reason"):
        reason = f"{_failure_of_pod(status)} ({reason})"
    return "exited", exit_code, reason


def _failure_of_pod(status: Mapping[str, Any]) -> str:
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if reason == "Evicted":
        return f"evicted from its node: {message}"
    if reason.startswith("OutOf"):
        return f"its node had no room for it ({reason}): {message}"
    return f"the Pod failed: {': '.join(filter(None, [reason, message])) or 'the cluster does not say why'}"


def _failed_init(pod: Mapping[str, Any]) -> str:
    """Why an init container keeps the runner from ever starting; "" where none does. Those that are started again
    (`restartPolicy: Always`, sidecars) do not."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {each["name"] for each in spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"}
    for each in status.get("initContainerStatuses") or []:
        ended = (each.get("state") or {}).get("terminated") or {}
        if each["name"] not in sidecars and ended.get("exitCode", 0) != 0:
            why = ended_because(
                int(ended["exitCode"]),
                out_of_memory=ended.get("reason") == "OOMKilled",
                last_lines=str(ended.get("message") or ""),
            )
            return f"the init container {each['name']} failed: {why}"
    return ""


def _hindrance(pod: Mapping[str, Any], runner: Mapping[str, Any]) -> str:
    """Why it does not start; "" where nothing is known to be in its way."""
    status = pod.get("status") or {}
    waiting = runner.get("waiting") or {}
    reason, message = waiting.get("reason"), waiting.get("message") or ""
    if reason in _PULL_PROBLEMS:
        images = [str(each.get("image")) for each in pod["spec"]["containers"] if each["name"] == RUNNER]
        return f"image {', '.join(images)} could not be pulled: {message or reason}"
    if reason and reason not in _ON_ITS_WAY:
        return f"the container could not be made: {message or reason}"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"no node takes it: {condition.get('message') or condition.get('reason')}"
    return ""


def _status_of(status: Mapping[str, Any], name: str) -> dict[str, Any]:
    for each in status.get("containerStatuses") or []:
        if each.get("name") == name:
            return each.get("state") or {}
    return {}

"""How do runners start as Pods of a Kubernetes cluster?"""

from __future__ import annotations

import base64
import builtins
import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.conf import settings
from kubernetes.client import ApiClient

from ci.scaling.launchers import kubernetes_api, kubernetes_pods, kubernetes_template, marks
from ci.scaling.launchers.deadline import Deadline, within
from ci.scaling.launchers.kubernetes_api import CLUSTER, Answered, Cluster
from ci.scaling.launchers.kubernetes_template import check_template
from ci.scaling.launchers.protocol import (
    LIMIT_SECONDS,
    MAX_REASON,
    Launch,
    LaunchError,
    PermanentLaunchError,
    Process,
    TransientLaunchError,
)

__all__ = ["KubernetesLauncher", "check_template", "from_settings"]

# Force: long enough for the kubelet to tell that the processes are gone, and so not 0.
FORCE_GRACE_SECONDS = 1
# A kubelet that has not said so by then is gone itself, as its node is.
LOST_NODE_SECONDS = 60
# What has ended is kept for whoever still wants to know how; sidecars may run on meanwhile.
FORGET_SECONDS = 120
MAX_FORGOTTEN = 20
_HANDLE = re.compile(r"([a-z0-9][a-z0-9-]{0,62})/([a-z0-9][a-z0-9-]{0,250})/([A-Za-z0-9-]{8,64})")
Answer = TypeVar("Answer")


def from_settings(*, installation: str) -> KubernetesLauncher:
    kubeconfig = str(getattr(settings, "SCALE_KUBECONFIG", ""))
    context = str(getattr(settings, "SCALE_KUBERNETES_CONTEXT", ""))
    return KubernetesLauncher(
        lambda: kubernetes_api.connection(kubeconfig=kubeconfig, context=context),
        installation=installation,
        namespaces=kubernetes_template.namespaces(),
    )


class KubernetesLauncher:
    """One Pod an attempt, with a secret that goes when it goes. The handle is namespace, name and UID."""

    def __init__(
        self,
        connect: Callable[[], ApiClient],
        *,
        installation: str,
        namespaces: Iterable[str],
        limit: float = LIMIT_SECONDS,
    ) -> None:
        self._cluster = Cluster(connect)
        self._installation = installation
        self._namespaces = tuple(namespaces)
        self._limit = limit

    def start(self, launch: Launch) -> str:
        if problems := check_template(launch.template):
            raise PermanentLaunchError(f"The template is wrong: {' '.join(problems)}")
        try:
            return self._ask(lambda deadline: self._start(launch, deadline))
        except LaunchError as error:
            raise _clean(error, launch) from None

    def poll(self, handle: str) -> Process | None:
        if not (place := _HANDLE.fullmatch(handle)):
            return None
        pod = self._ask(lambda deadline: self._very(*place.groups(), deadline=deadline))
        return None if pod is None else self._process(pod)

    def stop(self, handle: str, *, force: bool) -> None:
        if place := _HANDLE.fullmatch(handle):
            self._ask(lambda deadline: self._stop(*place.groups(), force=force, deadline=deadline))

    def list(self, set_id: int | None = None) -> builtins.list[Process]:
        return self._ask(lambda deadline: self._list(set_id, deadline))

    def _ask(self, call: Callable[[Deadline], Answer]) -> Answer:
        def answered(deadline: Deadline) -> Answer:
            try:
                return call(deadline)
            except Answered as error:
                raise kubernetes_api.unanswered(error) from None

        return within(self._limit, answered, engine=CLUSTER)

    # --- start -----------------------------------------------------------------------------------------------------

    def _start(self, launch: Launch, deadline: Deadline) -> str:
        """
        First the Pod, then its secret: a Pod waits for a secret it lacks, and a secret with an owner goes with it. So
        whoever is killed in between leaves nothing that `list` does not find.
        """
        name = marks.name(launch.identity, installation=launch.installation)
        namespace = kubernetes_template.namespace_of(launch.template)
        pods = _path(namespace, "pods")
        try:
            # Strict: a misspelt field is an error, and not left out.
            pod = self._cluster.call(
                "POST",
                pods,
                body=kubernetes_template.pod(launch, name=name),
                query={"fieldValidation": "Strict"},
                deadline=deadline,
            )
        except Answered as error:
            if error.status != 409 or error.reason != "AlreadyExists":
                raise kubernetes_api.refused(error, "Pod") from None
            pod = self._existing(launch, namespace, name, deadline)
        if kubernetes_pods.read(pod)[0] == "starting" and not pod["metadata"].get("deletionTimestamp"):
            self._give_secret(launch, pod, deadline)
        return _handle(pod)

    def _existing(self, launch: Launch, namespace: str, name: str, deadline: Deadline) -> dict[str, Any]:
        try:
            pod = self._cluster.call("GET", _path(namespace, "pods", name), deadline=deadline)
        except Answered as error:
            if error.status == 404:
                raise TransientLaunchError("the Pod was taken away while it was being started", 1.0) from None
            raise
        if self._numbers(pod) != (launch.set_id, launch.runner_id, launch.attempt):
            raise TransientLaunchError(f"the name {name} is taken by a Pod that is none of this forge's")
        return pod

    def _give_secret(self, launch: Launch, pod: Mapping[str, Any], deadline: Deadline) -> None:
        metadata = pod["metadata"]
        namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
        body = kubernetes_template.secret(launch, name=name, uid=uid)
        try:
            self._cluster.call("POST", _path(namespace, "secrets"), body=body, deadline=deadline)
        except Answered as error:
            if error.reason == "AlreadyExists" and self._is_of(namespace, name, uid, deadline):
                return
            # Without its secret it would wait for ever, and its name would stand in the way of the next try.
            self._delete(namespace, name, uid, grace=0, deadline=deadline)
            raise kubernetes_api.refused(error, "Secret") from None
        except LaunchError:
            # Whether the secret is there is unknown, and so whether the Pod runs.
            with contextlib.suppress(Answered, LaunchError):
                self._delete(namespace, name, uid, grace=FORCE_GRACE_SECONDS, deadline=deadline)
            raise

    def _is_of(self, namespace: str, name: str, uid: str, deadline: Deadline) -> bool:
        """Whether the secret of this name belongs to this Pod. One of an earlier Pod of that name is on its way out."""
        try:
            found = self._cluster.call("GET", _path(namespace, "secrets", name), deadline=deadline)
        except Answered as error:
            if error.status == 404:
                return False
            raise
        return any(owner.get("uid") == uid for owner in found["metadata"].get("ownerReferences") or [])

    # --- poll, stop, list ------------------------------------------------------------------------------------------

    def _very(self, namespace: str, name: str, uid: str, *, deadline: Deadline) -> dict[str, Any] | None:
        """The very Pod, read from the cluster's store and no cache; None where it is gone or another one."""
        try:
            pod = self._cluster.call("GET", _path(namespace, "pods", name), deadline=deadline)
        except Answered as error:
            if error.status == 404:
                return None
            raise
        return pod if pod["metadata"]["uid"] == uid and self._numbers(pod) is not None else None

    def _stop(self, namespace: str, name: str, uid: str, *, force: bool, deadline: Deadline) -> None:
        pod = self._very(namespace, name, uid, deadline=deadline)
        if pod is None:
            return
        due = kubernetes_pods.parse_time(pod["metadata"].get("deletionTimestamp"))
        if force:
            lost = due is not None and datetime.now(UTC) - due > timedelta(seconds=LOST_NODE_SECONDS)
            self._delete(namespace, name, uid, grace=0 if lost else FORCE_GRACE_SECONDS, deadline=deadline)
        elif due is None:
            # With the Pod's own grace.
            self._delete(namespace, name, uid, grace=None, deadline=deadline)

    def _delete(self, namespace: str, name: str, uid: str, *, grace: int | None, deadline: Deadline) -> None:
        """Delete only the Pod that was looked at: the server compares the UID (409 for another one)."""
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self._cluster.call("DELETE", _path(namespace, "pods", name), body=body, deadline=deadline)
        except Answered as error:
            if error.status not in (404, 409):
                raise

    def _list(self, set_id: int | None, deadline: Deadline) -> builtins.list[Process]:
        selector = ",".join(marks.selector(installation=self._installation, set_id=set_id))
        pods = [
            pod
            for namespace in self._namespaces
            for pod in self._cluster.pages(_path(namespace, "pods"), deadline=deadline, selector=selector)
            if self._numbers(pod) is not None
        ]
        # What keeps it from forgetting must not keep it from telling what it found.
        with contextlib.suppress(Answered, LaunchError):
            self._forget(pods, deadline)
        return sorted(
            (self._process(pod) for pod in pods),
            key=lambda process: (process.set_id, process.runner_id, process.attempt),
        )

    def _forget(self, pods: Iterable[Mapping[str, Any]], deadline: Deadline) -> None:
        """Delete some that ended long ago: nobody else does."""
        before = datetime.now(UTC) - timedelta(seconds=FORGET_SECONDS)
        old = [pod["metadata"] for pod in pods if _ended_before(pod, before)]
        for metadata in old[:MAX_FORGOTTEN]:
            self._delete(metadata["namespace"], metadata["name"], metadata["uid"], grace=None, deadline=deadline)

    def _process(self, pod: Mapping[str, Any]) -> Process:
        numbers = self._numbers(pod)
        assert numbers is not None
        state, exit_code, reason = kubernetes_pods.read(pod)
        return Process(
            identity=marks.identity(numbers),
            handle=_handle(pod),
            set_id=numbers[0],
            runner_id=numbers[1],
            attempt=numbers[2],
            state=state,
            exit_code=exit_code,
            reason=reason[:MAX_REASON],
        )

    def _numbers(self, pod: Mapping[str, Any]) -> tuple[int, int, int] | None:
        return marks.read(pod["metadata"].get("labels"), installation=self._installation)


def _path(namespace: str, kind: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "")


def _handle(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}/{metadata['uid']}"


def _ended_before(pod: Mapping[str, Any], moment: datetime) -> bool:
    if pod["metadata"].get("deletionTimestamp") or kubernetes_pods.read(pod)[0] != "exited":
        return False
    # A Pod whose runner never ran says nowhere when it failed; it was made before that.
    ended = kubernetes_pods.ended_at(pod) or kubernetes_pods.parse_time(pod["metadata"].get("creationTimestamp"))
    return ended is not None and ended < moment


def _clean(error: LaunchError, launch: Launch) -> LaunchError:
    """The same error without the token, should a cluster ever repeat what it was given."""
    reason = error.reason
    for shown in (launch.token, base64.b64encode(launch.token.encode()).decode()):
        reason = reason.replace(shown, "***")
    if isinstance(error, TransientLaunchError):
        return TransientLaunchError(reason, error.retry_after)
    return type(error)(reason)

"""What do the tests of the Kubernetes launcher do to a cluster, faked or real, beside the launcher?"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import urlsplit

from kubernetes.client import ApiClient, Configuration, CoreV1Api
from kubernetes.client.exceptions import ApiException

from ci.scaling.launchers import marks
from ci.scaling.launchers.kubernetes import KubernetesLauncher
from ci.scaling.launchers.kubernetes_api import client_of
from ci.scaling.launchers.protocol import LIMIT_SECONDS, read_identity
from tests.scaling.fakes.boxes import command_lines
from tests.scaling.fakes.tap import Tap, Way
from tests.scaling.launchers.containers import SCRIPTS
from tests.scaling.launchers.contract import INSTALLATION, Bench, Seen, Work, until

NAMESPACE = "forge"
_WAIT = ["sh", "-c", "while :; do sleep 0.1; done"]


class PodBench(Bench):
    """A cluster's API server, with a tap before it."""

    def __init__(self, settings: Configuration, *, namespace: str, image: str) -> None:
        self.namespace = namespace
        self.image = image
        self.api = CoreV1Api(ApiClient(settings))
        address = urlsplit(settings.host)
        secure = address.scheme == "https"
        self.tap = Tap((str(address.hostname), address.port or (443 if secure else 80)))
        self._settings = settings
        self._near = self.tap.address.replace("http", address.scheme, 1)

    def connect(self) -> ApiClient:
        tapped = Configuration()
        for name in ("ssl_ca_cert", "cert_file", "key_file", "verify_ssl", "api_key", "api_key_prefix", "ca_cert_data"):
            setattr(tapped, name, getattr(self._settings, name))
        tapped.host = self._near
        tapped.tls_server_name = urlsplit(self._settings.host).hostname
        return client_of(tapped)

    def launcher(self, *, installation: str = INSTALLATION, limit: float | None = None) -> KubernetesLauncher:
        return KubernetesLauncher(
            self.connect, installation=installation, namespaces=[self.namespace], limit=limit or LIMIT_SECONDS
        )

    def template(self, work: Work) -> dict[str, Any]:
        base: dict[str, Any] = {"image": self.image, "namespace": self.namespace}
        if work is Work.IMPOSSIBLE:
            mount = {"name": "no-such-volume", "mountPath": "/data"}
            return {**base, "spec": {"containers": [{"name": "runner", "volumeMounts": [mount]}]}}
        container: dict[str, Any] = {
            "name": "runner",
            "command": ["sh", "-c", SCRIPTS[work].replace("{token}", "/dev/null")],
        }
        if work is Work.OUT_OF_MEMORY:
            container["resources"] = {"limits": {"memory": "32Mi"}}
        return {**base, "spec": {"containers": [container]}}

    def seen(self, handle: str) -> Seen:
        written = until(lambda: self._written(handle, "ready"), "the process")
        variables = written.split("\n")[0].split("\0")
        pod = self.api.read_namespaced_pod(self._name(handle), self.namespace)
        environment = dict(entry.partition("=")[::2] for entry in variables if "=" in entry)
        return Seen(environment, json.dumps(self.api.api_client.sanitize_for_serialization(pod)) + command_lines())

    def count(self, identity: str) -> int:
        numbers = read_identity(identity)
        assert numbers is not None
        labels = zip((marks.SET, marks.RUNNER, marks.ATTEMPT), numbers, strict=True)
        selector = ",".join(f"{label}={number}" for label, number in labels)
        return len(self.api.list_namespaced_pod(self.namespace, label_selector=selector).items)

    def alive(self, handle: str) -> int:
        """What a cluster itself tells: the runner's container runs, and the child has written that it does too."""
        if not self._runs(handle):
            return 0
        pod = self.api.read_namespaced_pod(self._name(handle), self.namespace)
        stubborn = pod.spec.containers[0].command == ["sh", "-c", SCRIPTS[Work.STUBBORN]]
        until(lambda: self._written(handle, "ready"), "the process with its child")
        return 2 if stubborn else 1

    def replace(self, handle: str) -> Callable[[], bool]:
        name = self._name(handle)
        old = self.api.read_namespaced_pod(name, self.namespace)
        self.api.delete_namespaced_pod(name, self.namespace, grace_period_seconds=0)
        until(lambda: not self._uid(name), "the Pod's end")
        body = {
            "metadata": {"name": name, "labels": old.metadata.labels},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "runner", "image": self.image, "command": _WAIT}],
            },
        }
        made = self.api.create_namespaced_pod(self.namespace, body)
        other = f"{self.namespace}/{name}/{made.metadata.uid}"
        until(lambda: self._runs(other), "the other Pod")
        return lambda: self._runs(other) and not self._is_leaving(name)

    def lose(self, handle: str) -> None:
        self.api.delete_namespaced_pod(self._name(handle), self.namespace, grace_period_seconds=0)

    def unable(self) -> AbstractContextManager[None]:
        return self._turned(Way.SHUT)

    def hanging(self, handle: str | None) -> AbstractContextManager[None]:
        return self._turned(Way.HELD)

    def close(self) -> None:
        for installation in (INSTALLATION, "elsewhere"):
            selector = ",".join(marks.selector(installation=installation, set_id=None))
            for pod in self.api.list_namespaced_pod(self.namespace, label_selector=selector).items:
                with contextlib.suppress(ApiException):
                    self.api.delete_namespaced_pod(pod.metadata.name, self.namespace, grace_period_seconds=0)
        self.tap.close()
        self.api.api_client.close()

    @contextlib.contextmanager
    def _turned(self, way: Way) -> Iterator[None]:
        self.tap.turn(way)
        try:
            yield
        finally:
            self.tap.turn(Way.OPEN)

    @staticmethod
    def _name(handle: str) -> str:
        return handle.split("/")[1]

    def _uid(self, name: str) -> str:
        try:
            return str(self.api.read_namespaced_pod(name, self.namespace).metadata.uid)
        except ApiException as error:
            assert error.status == 404, error
            return ""

    def _is_leaving(self, name: str) -> bool:
        return self.api.read_namespaced_pod(name, self.namespace).metadata.deletion_timestamp is not None

    def _runs(self, handle: str) -> bool:
        try:
            pod = self.api.read_namespaced_pod(self._name(handle), self.namespace)
        except ApiException as error:
            assert error.status == 404, error
            return False
        states = [each.state for each in pod.status.container_statuses or []]
        return pod.metadata.uid == handle.split("/")[2] and any(state.running is not None for state in states)

    def _written(self, handle: str, word: str) -> str | None:
        try:
            answer = self.api.read_namespaced_pod_log(
                self._name(handle), self.namespace, container="runner", _preload_content=False
            )
        except ApiException:
            return None  # not yet
        written = answer.data.decode()
        return written if f"{word}\n" in written else None


def settings_of(host: str, bearer: str) -> Configuration:
    """Plain access by address and token."""
    settings = Configuration()
    settings.host = host
    settings.api_key = {"authorization": f"Bearer {bearer}"}
    return settings

"""What happens at the start of a Pod: its secret, its template, and what clusters refuse?"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from kubernetes.client import ApiClient
from pytest_django.fixtures import Settings

from ci.scaling.launchers import kubernetes_template, marks
from ci.scaling.launchers.kubernetes import KubernetesLauncher
from ci.scaling.launchers.kubernetes_api import connection
from ci.scaling.launchers.protocol import LaunchError, PermanentLaunchError, TransientLaunchError
from tests.scaling.fakes.cluster import Failure
from tests.scaling.fakes.kubernetes import Kubernetes
from tests.scaling.launchers.contract import INSTALLATION, TOKEN, Work, launch, until, until_state
from tests.scaling.launchers.pods import NAMESPACE, PodBench


def _refuse(cluster: Kubernetes, method: str, kind: str, failure: Failure) -> None:
    def before(asked: str, path: str) -> None:
        if asked == method and path.endswith(kind):
            raise failure

    cluster.before = before


def _create(cluster: Kubernetes, body: dict[str, Any]) -> str:
    made = cluster.store.create("pods", NAMESPACE, body, strict=True)
    metadata = made["metadata"]
    return f"{NAMESPACE}/{metadata['name']}/{metadata['uid']}"


# --- the secret ----------------------------------------------------------------------------------------------------


def test_the_pod_comes_first_and_then_its_secret_which_goes_with_it(cluster: Kubernetes, pods: PodBench) -> None:
    """It should create/add all required resources for EphemeralRunner; clean up resources when deleted."""
    launcher = pods.launcher()
    handle = launcher.start(launch(pods.template(Work.LONG)))
    made = [(method, path.rsplit("/", 1)[1]) for method, path, _, _ in cluster.calls if method == "POST"]
    assert made == [("POST", "pods"), ("POST", "secrets")]
    (secret,) = cluster.store.all("secrets")
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", handle.split("/")[2])
    assert base64.b64decode(secret["data"]["token"]).decode() == TOKEN and secret["immutable"] is True
    until_state(launcher, handle, "running")
    launcher.stop(handle, force=True)
    until(lambda: launcher.poll(handle) is None, "the Pod's end")
    assert cluster.store.all("secrets") == ()


def test_the_token_is_in_the_secret_alone(cluster: Kubernetes, pods: PodBench) -> None:
    pods.launcher().start(launch(pods.template(Work.LONG)))
    for method, path, query, body in cluster.calls:
        if not path.endswith("/secrets"):
            assert TOKEN not in json.dumps([method, path, query, body])


def test_a_pod_left_by_a_scaler_killed_before_its_secret_is_found_and_completed(
    cluster: Kubernetes, pods: PodBench
) -> None:
    """TestReconcileDefersRunnerIdentityUntilPodExists: no secret is ever there without its Pod."""
    wanted = launch(pods.template(Work.LONG))
    name = marks.name(wanted.identity, installation=INSTALLATION)
    left = _create(cluster, kubernetes_template.pod(wanted, name=name))
    launcher = pods.launcher()
    found = until(lambda: [each for each in launcher.list() if "secret" in each.reason], "the reason")
    assert [(each.handle, each.state) for each in found] == [(left, "starting")]
    assert launcher.start(wanted) == left
    until_state(launcher, left, "running")
    assert pods.count(wanted.identity) == 1


def test_a_pod_left_without_its_secret_can_be_ended_too(cluster: Kubernetes, pods: PodBench) -> None:
    wanted = launch(pods.template(Work.LONG))
    left = _create(cluster, kubernetes_template.pod(wanted, name="forge-4-17-1-left"))
    pods.launcher().stop(left, force=True)
    until(lambda: pods.launcher().list() == [], "its end")


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure(403, "Forbidden", "secrets is forbidden: User cannot create"), PermanentLaunchError),
        (Failure(500, "InternalError", f"etcd is gone; got {TOKEN}"), TransientLaunchError),
    ],
    ids=["forbidden", "error"],
)
def test_a_secret_that_is_refused_leaves_no_pod(
    cluster: Kubernetes, pods: PodBench, failure: Failure, kind: type[LaunchError]
) -> None:
    _refuse(cluster, "POST", "/secrets", failure)
    with pytest.raises(kind, match="refuses the Secret") as caught:
        pods.launcher().start(launch(pods.template(Work.LONG)))
    assert TOKEN not in caught.value.reason
    until(lambda: cluster.store.all("pods") == (), "the Pod's end")


def test_a_connection_lost_before_the_secret_leaves_no_pod(cluster: Kubernetes, pods: PodBench) -> None:
    def before(method: str, path: str) -> None:
        if path.endswith("/secrets"):
            raise ConnectionAbortedError

    cluster.before = before
    with pytest.raises(TransientLaunchError, match="cannot be reached"):
        pods.launcher().start(launch(pods.template(Work.LONG)))
    until(lambda: cluster.store.all("pods") == (), "the Pod's end")


def test_a_secret_of_an_earlier_pod_of_that_name_is_not_taken_for_its_own(cluster: Kubernetes, pods: PodBench) -> None:
    """TestReconcileRejectsMalformedJITSecretBeforeCreatingPod: no secret is read back, whatever is in it."""
    wanted = launch(pods.template(Work.LONG))
    name = marks.name(wanted.identity, installation=INSTALLATION)
    body = kubernetes_template.secret(wanted, name=name, uid="unused")
    del body["metadata"]["ownerReferences"]  # else the faked garbage collection would take it at once
    cluster.store.create("secrets", NAMESPACE, body, strict=True)
    with pytest.raises(TransientLaunchError, match="already exists"):
        pods.launcher().start(wanted)
    until(lambda: cluster.store.all("pods") == (), "the Pod's end")


# --- what is refused -----------------------------------------------------------------------------------------------


def test_a_quota_is_transient_and_says_when_to_come_again(cluster: Kubernetes, pods: PodBench) -> None:
    cluster.store.quota = 1
    launcher = pods.launcher()
    first = launcher.start(launch(pods.template(Work.LONG), runner_id=1))
    with pytest.raises(TransientLaunchError, match="exceeded quota") as caught:
        launcher.start(launch(pods.template(Work.LONG), runner_id=2))
    assert caught.value.retry_after == 30
    launcher.stop(first, force=True)
    until(lambda: launcher.poll(first) is None, "room")
    launcher.start(launch(pods.template(Work.LONG), runner_id=2))


@pytest.mark.parametrize(
    ("failure", "kind", "retry_after"),
    [
        (Failure(422, "Invalid", 'Pod "x" is invalid: spec.containers[0].image: Required value'), "permanent", None),
        (Failure(403, "Forbidden", 'violates PodSecurity "restricted:latest": privileged'), "permanent", None),
        (Failure(403, "Forbidden", "maximum cpu usage per Container is 2, but limit is 4"), "permanent", None),
        (Failure(403, "Forbidden", "x is being terminated", causes=["NamespaceTerminating"]), "transient", 30),
        (Failure(404, "NotFound", 'namespaces "x" not found'), "permanent", None),
        (Failure(409, "Conflict", "Operation cannot be fulfilled on resourcequotas"), "transient", 5),
        (Failure(429, "TooManyRequests", "too many requests, please try again later"), "transient", 30),
        (Failure(500, "InternalError", "failed calling webhook: connection refused"), "transient", 30),
        (Failure(504, "Timeout", "request did not complete within the allotted time"), "transient", 30),
    ],
    ids=["invalid", "policy", "limits", "leaving", "namespace", "conflict", "busy", "webhook", "timeout"],
)
def test_what_a_cluster_refuses_is_told_apart(
    cluster: Kubernetes, pods: PodBench, failure: Failure, kind: str, retry_after: float | None
) -> None:
    """mark as failed if a pod template is invalid: Invalid, and Forbidden other than quota, are permanent."""
    _refuse(cluster, "POST", "/pods", failure)
    with pytest.raises(LaunchError, match="the cluster refuses the Pod") as caught:
        pods.launcher().start(launch(pods.template(Work.LONG)))
    assert isinstance(caught.value, PermanentLaunchError if kind == "permanent" else TransientLaunchError)
    assert getattr(caught.value, "retry_after", None) == retry_after


def test_a_busy_cluster_says_when_to_come_again(cluster: Kubernetes, pods: PodBench) -> None:
    failure = Failure(429, "TooManyRequests", "slow down")
    failure.retry_after = "7"
    _refuse(cluster, "POST", "/pods", failure)
    with pytest.raises(TransientLaunchError) as caught:
        pods.launcher().start(launch(pods.template(Work.LONG)))
    assert caught.value.retry_after == 7


def test_a_missing_right_is_permanent(cluster: Kubernetes, pods: PodBench) -> None:
    cluster.store.forbidden.add(("create", "pods"))
    with pytest.raises(PermanentLaunchError, match='cannot create resource "pods"'):
        pods.launcher().start(launch(pods.template(Work.LONG)))


def test_a_misspelt_field_is_permanent_and_named(pods: PodBench, settings: Settings) -> None:
    settings.SCALE_TRUSTED_TEMPLATES = True  # else only known fields come so far
    template = pods.template(Work.LONG)
    template["spec"]["containers"][0]["resorces"] = {}
    with pytest.raises(PermanentLaunchError, match=r'unknown field "spec.containers\[0\].resorces"'):
        pods.launcher().start(launch(template))


def test_a_name_that_another_installation_took_is_left_alone(cluster: Kubernetes, pods: PodBench) -> None:
    wanted = launch(pods.template(Work.LONG))
    name = marks.name(wanted.identity, installation=INSTALLATION)
    body = kubernetes_template.pod(wanted, name=name)
    body["metadata"]["labels"][marks.INSTALLATION] = "elsewhere"
    _create(cluster, body)
    with pytest.raises(TransientLaunchError, match="none of this forge's"):
        pods.launcher().start(wanted)
    assert len(cluster.store.all("pods")) == 1


def test_credentials_that_expired_are_read_again(cluster: Kubernetes, pods: PodBench) -> None:
    made: list[ApiClient] = []

    def connect() -> ApiClient:
        client = pods.connect()
        if not made:
            client.configuration.api_key = {"authorization": "Bearer old"}
        made.append(client)
        return client

    launcher = KubernetesLauncher(connect, installation=INSTALLATION, namespaces=[NAMESPACE])
    with pytest.raises(TransientLaunchError, match="Unauthorized"):
        launcher.list()
    assert launcher.list() == [] and len(made) == 2


def test_a_cluster_that_is_none_is_transient(tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere = tmp_path_factory.mktemp("nowhere") / "kubeconfig"
    launcher = KubernetesLauncher(
        lambda: connection(kubeconfig=str(nowhere), context=""), installation=INSTALLATION, namespaces=[NAMESPACE]
    )
    with pytest.raises(TransientLaunchError, match="no usable configuration"):
        launcher.list()
    nowhere.write_text(
        json.dumps(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
                "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "me", "user": {"token": "t"}}],
            }
        )
    )
    with pytest.raises(TransientLaunchError, match=r"cannot be reached.*refused"):
        launcher.list()

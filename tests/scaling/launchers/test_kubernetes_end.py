"""How do Pods end, are only the right ones deleted, and are those that ended forgotten?"""

from __future__ import annotations

from typing import Any

import pytest

from ci.scaling.launchers import kubernetes as kubernetes_launcher
from ci.scaling.launchers import kubernetes_api
from ci.scaling.launchers.protocol import TransientLaunchError
from tests.scaling.fakes.cluster import Failure
from tests.scaling.fakes.kubernetes import Kubernetes
from tests.scaling.launchers.containers import SCRIPTS
from tests.scaling.launchers.contract import Work, launch, until, until_state
from tests.scaling.launchers.pods import PodBench


def _spec(pods: PodBench, work: Work, **more: Any) -> dict[str, Any]:
    template = pods.template(work)
    return {**template, "spec": {**template["spec"], **more}}


def _deletions(cluster: Kubernetes) -> list[dict[str, Any]]:
    return [body for method, _, _, body in cluster.calls if method == "DELETE"]


def test_only_the_pod_that_was_looked_at_is_deleted(cluster: Kubernetes, pods: PodBench) -> None:
    """TestDeletePodOptionsDeletesOnlyThePodItLookedAt"""
    launcher = pods.launcher()
    handle = launcher.start(launch(pods.template(Work.LONG)))
    until_state(launcher, handle, "running")

    def replaced(method: str, path: str) -> None:
        # After the launcher's look, and before its deletion.
        if method == "DELETE" and path.startswith("/api"):
            cluster.before = lambda method, path: None
            others.append(pods.replace(handle))

    others: list[Any] = []
    cluster.before = replaced
    launcher.stop(handle, force=True)
    assert others and others[0]()
    assert _deletions(cluster)[0]["preconditions"] == {"uid": handle.split("/")[2]}
    assert launcher.poll(handle) is None


def test_a_pod_of_another_installation_is_neither_told_of_nor_touched(cluster: Kubernetes, pods: PodBench) -> None:
    handle = pods.launcher().start(launch(pods.template(Work.LONG)))
    other = pods.launcher(installation="elsewhere")
    assert other.poll(handle) is None
    other.stop(handle, force=False)
    other.stop(handle, force=True)
    assert _deletions(cluster) == []
    until_state(pods.launcher(), handle, "running")


def test_a_poll_reads_the_store_and_no_cache(cluster: Kubernetes, pods: PodBench) -> None:
    """TestRunnerFinalizerDoesNotTrustStalePodCache: a resourceVersion would let the server answer from its cache."""
    launcher = pods.launcher()
    handle = launcher.start(launch(pods.template(Work.LONG)))
    cluster.calls.clear()
    launcher.poll(handle)
    launcher.list()
    assert [(method, "resourceVersion" in query) for method, _, query, _ in cluster.calls] == [("GET", False)] * 2


def test_a_read_that_fails_neither_tells_that_a_pod_is_gone_nor_deletes_it(cluster: Kubernetes, pods: PodBench) -> None:
    """TestRunnerFinalizerPreservesPodWhenAuthoritativeReadFails"""
    launcher = pods.launcher()
    handle = launcher.start(launch(pods.template(Work.LONG)))

    def before(method: str, path: str) -> None:
        if method == "GET":
            raise Failure(500, "InternalError", "etcdserver: request timed out")

    cluster.before = before
    with pytest.raises(TransientLaunchError, match="request timed out"):
        launcher.poll(handle)
    with pytest.raises(TransientLaunchError, match="request timed out"):
        launcher.stop(handle, force=True)
    with pytest.raises(TransientLaunchError, match="request timed out"):
        launcher.list()
    assert _deletions(cluster) == []
    cluster.before = lambda method, path: None
    until_state(launcher, handle, "running")


def test_a_gentle_stop_has_the_pods_own_grace_and_is_asked_for_once(cluster: Kubernetes, pods: PodBench) -> None:
    launcher = pods.launcher()
    handle = launcher.start(launch(_spec(pods, Work.STUBBORN, terminationGracePeriodSeconds=900)))
    assert pods.alive(handle) >= 2
    launcher.stop(handle, force=False)
    launcher.stop(handle, force=False)
    assert ["gracePeriodSeconds" in body for body in _deletions(cluster)] == [False]
    (pod,) = cluster.store.all("pods")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 900
    assert pods.alive(handle) >= 2
    launcher.stop(handle, force=True)
    until(lambda: launcher.poll(handle) is None, "its end")


def test_force_waits_for_the_kubelets_word_and_not_for_a_node_that_is_lost(
    cluster: Kubernetes, pods: PodBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TestReconcileReleasesTheRunnerPodWithoutAGracePeriod, where nothing can run any more."""
    launcher = pods.launcher()
    handle = launcher.start(launch(pods.template(Work.LONG)))
    until_state(launcher, handle, "running")
    cluster.kubelet.hears = False
    launcher.stop(handle, force=True)
    launcher.stop(handle, force=True)
    assert [body["gracePeriodSeconds"] for body in _deletions(cluster)] == [1, 1]
    assert launcher.poll(handle) is not None  # it may still run there
    monkeypatch.setattr(kubernetes_launcher, "LOST_NODE_SECONDS", -60)
    launcher.stop(handle, force=True)
    assert _deletions(cluster)[-1]["gracePeriodSeconds"] == 0
    assert launcher.poll(handle) is None
    cluster.kubelet.hears = True


def test_an_eviction_is_told(cluster: Kubernetes, pods: PodBench) -> None:
    """re-create pod on eviction"""
    launcher = pods.launcher()
    handle = launcher.start(launch(pods.template(Work.LONG)))
    until_state(launcher, handle, "running")
    cluster.kubelet.evict(cluster.store.all("pods")[0])
    process = until(lambda: _told(launcher.poll(handle), "evicted"), "the eviction")
    assert process.exit_code == 137 and "low on resource: memory" in process.reason


def _told(process: Any, word: str) -> Any:
    return process if process is not None and process.state == "exited" and word in process.reason else None


def test_a_failing_init_container_is_told(pods: PodBench) -> None:
    """re-create pod when init container fails before pod phase transitions to Failed"""
    init = {"name": "fetch", "image": "shell:1", "command": ["sh", "-c", "echo 'no such host' >&2; exit 4"]}
    init["terminationMessagePolicy"] = "FallbackToLogsOnError"
    launcher = pods.launcher()
    process = until_state(launcher, launcher.start(launch(_spec(pods, Work.LONG, initContainers=[init]))), "exited")
    assert process.exit_code is None
    assert process.reason == "the init container fetch failed: exit code 4: no such host"


@pytest.mark.parametrize("code", [0, 1])
def test_a_runner_that_exits_with_0_did_well_whatever_its_sidecar_does(
    cluster: Kubernetes, pods: PodBench, code: int
) -> None:
    """treat pod failed with runner container exit 0 as success"""
    sidecar = {"name": "cache", "image": "shell:1", "command": ["sh", "-c", f"exit {code}"]}
    template = pods.template(Work.SUCCEED)
    template["spec"]["containers"].append(sidecar)
    launcher = pods.launcher()
    handle = launcher.start(launch(template))
    process = until_state(launcher, handle, "exited")
    until(lambda: cluster.store.all("pods")[0]["status"]["phase"] == ("Failed" if code else "Succeeded"), "the phase")
    assert (process.exit_code, process.reason) == (0, "") and launcher.poll(handle) == process


def test_a_runner_has_ended_while_its_sidecar_runs_on_and_the_stop_ends_that_too(
    cluster: Kubernetes, pods: PodBench
) -> None:
    sidecar = {"name": "cache", "image": "shell:1", "command": ["sh", "-c", SCRIPTS[Work.STUBBORN]]}
    template = pods.template(Work.OUTDATED)
    template["spec"]["containers"].append(sidecar)
    launcher = pods.launcher()
    handle = launcher.start(launch(template))
    assert until_state(launcher, handle, "exited").exit_code == 7
    assert cluster.store.all("pods")[0]["status"]["phase"] == "Running"
    boxes = cluster.kubelet.boxes(handle.split("/")[2])
    assert boxes["cache"].pids()
    launcher.stop(handle, force=True)
    until(lambda: launcher.poll(handle) is None, "its end")
    assert boxes["cache"].pids() == []


def test_what_keeps_a_pod_from_starting_is_told(cluster: Kubernetes, pods: PodBench) -> None:
    cluster.kubelet.is_full = True
    launcher = pods.launcher()
    handle = launcher.start(launch(pods.template(Work.LONG)))
    reason = until(lambda: getattr(launcher.poll(handle), "reason", ""), "a reason")
    assert reason == "no node takes it: 0/1 nodes are available: 1 Insufficient cpu."
    cluster.kubelet.images_missing.add("shell:1")
    cluster.kubelet.is_full = False
    until(lambda: "image shell:1 could not be pulled" in launcher.list()[0].reason, "the other reason")
    cluster.kubelet.images_missing.clear()
    assert until_state(launcher, handle, "running").reason == ""


def test_a_list_comes_in_pages_and_is_begun_anew_where_the_cluster_forgot_it(
    cluster: Kubernetes, pods: PodBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_api, "PAGE", 2)
    launcher = pods.launcher()
    for number in (1, 2, 3, 10, 11):
        launcher.start(launch(pods.template(Work.LONG), runner_id=number))
    cluster.store.tokens_expire = True
    cluster.calls.clear()
    assert [each.runner_id for each in launcher.list()] == [1, 2, 3, 10, 11]
    assert ["continue" in query for _, _, query, _ in cluster.calls] == [False, True, False, True, True]


def test_what_ended_long_ago_is_told_once_more_and_then_forgotten(
    cluster: Kubernetes, pods: PodBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = pods.launcher()
    ended = launcher.start(launch(pods.template(Work.FAIL), runner_id=1))
    runs = launcher.start(launch(pods.template(Work.LONG), runner_id=2))
    until_state(launcher, ended, "exited")
    until_state(launcher, runs, "running")
    assert [each.runner_id for each in launcher.list()] == [1, 2] and _deletions(cluster) == []
    monkeypatch.setattr(kubernetes_launcher, "FORGET_SECONDS", -60)
    assert [(each.runner_id, each.exit_code) for each in launcher.list()] == [(1, 3), (2, None)]
    until(lambda: [each.runner_id for each in launcher.list()] == [2], "the end of the first")
    assert launcher.poll(ended) is None
    assert until_state(launcher, runs, "running")

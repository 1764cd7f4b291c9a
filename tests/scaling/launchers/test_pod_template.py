"""Which Pod does a set's template describe, and what may it not say?"""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from ci.scaling import launchers
from ci.scaling.launchers.kubernetes_template import check_template, namespace_of, pod
from tests.scaling.launchers.contract import TOKEN, URL, launch

TOKEN_ENTRY = {"name": "FORGE_RUNNER_TOKEN", "valueFrom": {"secretKeyRef": {"name": "p", "key": "token"}}}


@pytest.fixture(autouse=True)
def _one_namespace(settings: Settings) -> None:
    settings.SCALE_KUBERNETES_NAMESPACES = ["runners", "others"]


def test_a_template_may_be_an_image_alone() -> None:
    template = {"image": "runner:1"}
    assert check_template(template) == [] and namespace_of(template) == "runners"
    made = pod(launch(template), name="p")
    assert made["metadata"]["name"] == "p" and "generateName" not in made["metadata"]
    assert made["metadata"]["labels"] == {
        "forge-ci/installation": "here",
        "forge-ci/set": "4",
        "forge-ci/runner": "17",
        "forge-ci/attempt": "1",
    }
    assert made["spec"]["restartPolicy"] == "Never" and made["spec"]["automountServiceAccountToken"] is False
    (runner,) = made["spec"]["containers"]
    assert (runner["name"], runner["image"]) == ("runner", "runner:1")
    assert runner["args"] == ["python", "-m", "ci.runner", "once"] and "command" not in runner
    assert TOKEN_ENTRY in runner["env"] and {"name": "FORGE_URL", "value": URL} in runner["env"]
    assert TOKEN not in str(made)


def test_the_container_named_runner_is_merged_and_everything_else_is_kept(settings: Settings) -> None:
    settings.SCALE_TRUSTED_TEMPLATES = True
    template: dict[str, Any] = {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "x"}},
        "environment": {"TZ": "UTC"},
        "url": "http://forge.internal",
        "spec": {
            "serviceAccountName": "builder",
            "initContainers": [{"name": "fetch", "image": "fetch:1"}],
            "volumes": [{"name": "work", "emptyDir": {}}, {"name": "cache", "hostPath": {"path": "/cache"}}],
            "containers": [
                {"name": "docker", "image": "docker:dind", "securityContext": {"privileged": True}},
                {
                    "name": "runner",
                    "image": "runner:2",
                    "command": ["/start"],
                    "env": [{"name": "A", "value": "1"}, {"name": "FORGE_URL", "value": "http://evil"}],
                    "resources": {"limits": {"memory": "2Gi"}},
                    "volumeMounts": [{"name": "work", "mountPath": "/work"}],
                },
            ],
        },
    }
    assert check_template(template) == []
    made = pod(launch(template), name="p")
    runner, sidecar = made["spec"]["containers"]
    assert sidecar == template["spec"]["containers"][0]
    assert (runner["image"], runner["command"], "args" in runner) == ("runner:2", ["/start"], False)
    assert runner["resources"] == {"limits": {"memory": "2Gi"}} and runner["volumeMounts"][0]["name"] == "work"
    entries = {entry["name"]: entry for entry in runner["env"]}
    assert len(entries) == len(runner["env"])
    assert entries["A"]["value"] == "1" and entries["TZ"]["value"] == "UTC"
    assert entries["FORGE_URL"]["value"] == "http://forge.internal" and entries["FORGE_RUNNER_TOKEN"] == TOKEN_ENTRY
    for kept in ("serviceAccountName", "initContainers", "volumes"):
        assert made["spec"][kept] == template["spec"][kept]
    assert made["metadata"]["labels"]["team"] == "a" and made["metadata"]["annotations"] == {"note": "x"}
    assert template["spec"]["containers"][1]["env"][1]["value"] == "http://evil"  # the template itself is as it was


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"hostNetwork": True}, "hostNetwork"),
        ({"serviceAccountName": "admin"}, "serviceAccountName"),
        ({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}, "volumes[0].hostPath"),
        ({"volumes": [{"name": "s", "secret": {"secretName": "other"}}]}, "volumes[0].secret"),
        (
            {"containers": [{"name": "runner", "securityContext": {"privileged": True}}]},
            "containers[0].securityContext",
        ),
        ({"containers": [{"name": "runner", "envFrom": []}]}, "containers[0].envFrom"),
        ({"containers": [{"name": "x", "env": [{"name": "A", "valueFrom": {}}]}]}, "containers[0].env[0].valueFrom"),
        ({"initContainers": [{"name": "x", "lifecycle": {}}]}, "initContainers[0].lifecycle"),
        ({"automountServiceAccountToken": True}, "automountServiceAccountToken"),
        ({"automountServiceAccountToken": None}, "automountServiceAccountToken"),
        (
            {"containers": [{"name": "x", "ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 80}]}]},
            "containers[0].ports[1].hostPort",
        ),
        (
            {"initContainers": [{"name": "x", "ports": [{"containerPort": 80, "hostIP": "10.0.0.1"}]}]},
            "initContainers[0].ports[0].hostIP",
        ),
        (
            {"containers": [{"name": "x", "readinessProbe": {"httpGet": {"port": 80, "host": "169.254.169.254"}}}]},
            "containers[0].readinessProbe.httpGet.host",
        ),
        (
            {"containers": [{"name": "x", "startupProbe": {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}}]},
            "containers[0].startupProbe.tcpSocket.host",
        ),
        ({"containers": [{"name": "x", "startupProbe": {"new": {}}}]}, "containers[0].startupProbe.new"),
    ],
)
def test_what_reaches_beyond_the_pod_takes_the_operators_trust(
    settings: Settings, spec: dict[str, Any], words: str
) -> None:
    template = {"image": "runner:1", "spec": spec}
    (problem,) = check_template(template)
    assert problem.startswith(f"spec: {words} is only for templates that the operator trusts")
    settings.SCALE_TRUSTED_TEMPLATES = True
    assert check_template(template) == []


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_what_others_in_the_cluster_go_by_takes_the_operators_trust(settings: Settings, kind: str) -> None:
    template = {"image": "runner:1", "metadata": {kind: {"eks.amazonaws.com/role-arn": "admin"}}}
    (problem,) = check_template(template)
    assert problem.startswith(f"metadata: {kind} is only for templates that the operator trusts")
    settings.SCALE_TRUSTED_TEMPLATES = True
    assert check_template(template) == []


def test_what_stays_within_the_pod_is_for_everybody() -> None:
    spec = {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "database",
                "image": "postgres:16",
                "ports": [{"name": "sql", "containerPort": 5432, "protocol": "TCP"}],
                "startupProbe": {"exec": {"command": ["pg_isready"]}, "periodSeconds": 1},
                "readinessProbe": {"httpGet": {"port": 80, "path": "/ready", "scheme": "HTTP"}, "failureThreshold": 3},
            }
        ],
        "volumes": [{"name": "work", "emptyDir": {}}],
    }
    template = {"image": "runner:1", "metadata": {"labels": {}, "annotations": {}}, "spec": spec}
    assert check_template(template) == []
    assert pod(launch(template), name="p")["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ([], "is a JSON object"),
        ({}, "'image' is missing"),
        ({"spec": {"containers": [{"name": "other", "image": "x"}]}}, "'image' is missing"),
        ({"image": "x", "namespace": "kube-system"}, "one of runners, others"),
        ({"image": "x", "metadata": {"name": "mine"}}, "names the Pods itself"),
        ({"image": "x", "metadata": {"labels": {"forge-ci/set": "9"}}}, "cannot be set"),
        ({"image": "x", "metadata": {"labels": {"a": 1}}}, "a text is wanted"),
        ({"image": "x", "spec": []}, "the spec of a Pod"),
        ({"image": "x", "spec": {"containers": {"runner": {}}}}, "a list"),
        ({"image": "x", "spec": {"containers": [{"image": "y"}]}}, "each has a name"),
        ({"image": "x", "spec": {"containers": [{"name": "runner"}, {"name": "runner"}]}}, "one 'runner' only"),
        ({"image": "x", "spec": {"containers": [{"name": "runner", "env": {}}]}}, "env: a list"),
        ({"image": "x", "spec": {"containers": [{"name": "runner", "ports": {}}]}}, "ports: a list"),
        ({"image": "x", "spec": {"containers": [{"name": "runner", "startupProbe": []}]}}, "startupProbe: an object"),
        (
            {"image": "x", "spec": {"containers": [{"name": "runner", "readinessProbe": {"httpGet": 80}}]}},
            "readinessProbe: an object",
        ),
        ({"image": "x", "spec": {"restartPolicy": "Always"}}, "only Never"),
    ],
)
def test_a_wrong_template_is_refused_with_a_sentence(template: Any, words: str) -> None:
    problems = launchers.check_template("kubernetes", template)
    assert len(problems) == 1 and words in problems[0], problems

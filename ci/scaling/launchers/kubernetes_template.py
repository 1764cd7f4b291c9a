"""Which Pod does a set's template describe?"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings

from ci.scaling.launchers import fields, marks
from ci.scaling.launchers.docker_template import COMMAND
from ci.scaling.launchers.protocol import TOKEN_VARIABLE, URL_VARIABLE, Launch
from ci.scaling.launchers.trust import needs_trust, templates_are_trusted

RUNNER = "runner"
TOKEN_KEY = "token"  # noqa: S105 (the name of a secret's field)
# A node that is drained lets a job in hand end first. Whoever must not wait that long ends the Pod by force.
GRACE_SECONDS = 3600
# What of a Pod reaches beyond it, or at what others keep in its namespace, is not here: that takes trust.
_OPEN_SPEC = frozenset(
    {
        "activeDeadlineSeconds", "affinity", "containers", "dnsPolicy", "enableServiceLinks", "initContainers",
        "nodeSelector", "os", "restartPolicy", "terminationGracePeriodSeconds", "tolerations",
        "topologySpreadConstraints", "volumes",
    }
)  # fmt: skip
_OPEN_CONTAINER = frozenset(
    {
        "args", "command", "env", "image", "imagePullPolicy", "name", "ports", "readinessProbe", "resources",
        "restartPolicy", "startupProbe", "terminationMessagePath", "terminationMessagePolicy", "volumeMounts",
        "workingDir",
    }
)  # fmt: skip
_OPEN_ENV = frozenset({"name", "value"})
_OPEN_PORT = frozenset({"containerPort", "name", "protocol"})
_OPEN_PROBE = frozenset(
    {
        "exec", "failureThreshold", "grpc", "httpGet", "initialDelaySeconds", "periodSeconds", "successThreshold",
        "tcpSocket", "terminationGracePeriodSeconds", "timeoutSeconds",
    }
)  # fmt: skip
# The node asks, not the Pod: with a host of its own it would ask any address that the node can reach.
_OPEN_REQUEST = frozenset({"httpHeaders", "path", "port", "scheme", "service"})
_PROBES = ("readinessProbe", "startupProbe")
_REQUESTS = ("grpc", "httpGet", "tcpSocket")
_OPEN_VOLUME = frozenset({"name", "emptyDir"})
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?")


def namespaces() -> list[str]:
    """Where Pods may be, by the operator's word; the first is where they are unless a template says otherwise."""
    return list(getattr(settings, "SCALE_KUBERNETES_NAMESPACES", None) or ["default"])


def check_template(template: Mapping[str, Any]) -> list[str]:
    """What is wrong with a template, a sentence each; what only the cluster can tell, it tells at the start."""
    problems = fields.problems(template, checks=_CHECKS)
    if not problems and "image" not in template and not _runner_of(template.get("spec", {})).get("image"):
        problems.append(f"'image' is missing, here or in the container '{RUNNER}' of spec.")
    return problems


def namespace_of(template: Mapping[str, Any]) -> str:
    return str(template.get("namespace") or namespaces()[0])


def pod(launch: Launch, *, name: str) -> dict[str, Any]:
    """The Pod of a launch. The token is in the secret of the same name, which is made once the Pod has its UID.

    Source of the names: Kubernetes API, core/v1 Pod.
    """
    template = launch.template
    given = copy.deepcopy(dict(template.get("metadata", {})))
    spec = copy.deepcopy(dict(template.get("spec", {})))
    runner = _runner(launch, _runner_of(spec), secret=name)
    others = [container for container in spec.get("containers", []) if container.get("name") != RUNNER]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**given.get("labels", {}), **marks.labels(launch)},
            "annotations": given.get("annotations", {}),
        },
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            **spec,
            # One life an attempt: what has ended must be seen to have ended.
            "restartPolicy": "Never",
            "containers": [runner, *others],
        },
    }


def secret(launch: Launch, *, name: str, uid: str) -> dict[str, Any]:
    """Holds the token, and goes with the Pod of this UID."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": False}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": marks.labels(launch), "ownerReferences": [owner]},
        "type": "Opaque",
        "immutable": True,
        "stringData": {TOKEN_KEY: launch.token},
    }


def _runner_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    return next((dict(each) for each in spec.get("containers", []) if each.get("name") == RUNNER), {})


def _runner(launch: Launch, given: dict[str, Any], *, secret: str) -> dict[str, Any]:
    """The template's container `runner` with what the forge adds; variables are merged by name, the forge's win."""
    template = launch.template
    merged: dict[str, Any] = {"terminationMessagePolicy": "FallbackToLogsOnError", **given, "name": RUNNER}
    if "image" in template:
        merged["image"] = template["image"]
    if "command" in template or not given.keys() & {"command", "args"}:
        merged["args"] = template.get("command", COMMAND)
    plain = {**template.get("environment", {}), **launch.environment()}
    plain[URL_VARIABLE] = template.get("url", launch.url)
    del plain[TOKEN_VARIABLE]
    ours: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in plain.items()]
    ours.append({"name": TOKEN_VARIABLE, "valueFrom": {"secretKeyRef": {"name": secret, "key": TOKEN_KEY}}})
    names = {entry["name"] for entry in ours}
    merged["env"] = [entry for entry in given.get("env", []) if entry.get("name") not in names] + ours
    return merged


# --- checks --------------------------------------------------------------------------------------------------------


def _namespace(value: Any) -> list[str]:
    known = namespaces()
    return [] if value in known else [f"one of {', '.join(known)} is wanted (FORGE_SCALE_KUBERNETES_NAMESPACES)."]


def _metadata(value: Any) -> list[str]:
    if not isinstance(value, Mapping) or not value.keys() <= {"labels", "annotations"}:
        return ["an object with labels and annotations is wanted; the forge names the Pods itself."]
    found = []
    for kind, entries in value.items():
        if not isinstance(entries, Mapping) or len(entries) > fields.MAX_ITEMS:
            found.append(f"{kind}: an object of names and texts is wanted.")
            continue
        for name, text in entries.items():
            if not isinstance(name, str) or not _LABEL.fullmatch(name) or name.startswith("forge-ci/"):
                found.append(f"{kind}: '{name}' cannot be set.")
            elif not isinstance(text, str) or len(text) > fields.MAX_TEXT:
                found.append(f"{kind}: {name}: a text is wanted.")
    if found or templates_are_trusted():
        return found
    # Services select by labels; by annotations others give a Pod a role in the cloud, a sidecar or another confinement.
    return [needs_trust(kind) for kind, entries in sorted(value.items()) if entries]


def _spec(value: Any) -> list[str]:
    if not isinstance(value, Mapping):
        return ["the spec of a Pod is wanted, as an object."]
    found = _shapes(value)
    if not found and value.get("restartPolicy", "Never") != "Never":
        found.append("restartPolicy: only Never fits a runner that takes one job.")
    return found if found or templates_are_trusted() else _spec_beyond(value)


def _spec_beyond(spec: Mapping[str, Any]) -> list[str]:
    found = []
    given = dict(spec)
    # Said by itself, and no more than what holds anyhow.
    if given.get("automountServiceAccountToken") is False:
        del given["automountServiceAccountToken"]
    found += _beyond(given, _OPEN_SPEC, "")
    for kind in ("containers", "initContainers"):
        for number, container in enumerate(spec.get(kind, [])):
            found += _container_beyond(container, f"{kind}[{number}].")
    for number, volume in enumerate(spec.get("volumes", [])):
        found += _beyond(volume, _OPEN_VOLUME, f"volumes[{number}].")
    return found


def _container_beyond(container: Mapping[str, Any], where: str) -> list[str]:
    found = _beyond(container, _OPEN_CONTAINER, where)
    for kind, allowed in (("env", _OPEN_ENV), ("ports", _OPEN_PORT)):
        for place, entry in enumerate(container.get(kind, [])):
            found += _beyond(entry, allowed, f"{where}{kind}[{place}].")
    for kind in _PROBES:
        probe = container.get(kind, {})
        found += _beyond(probe, _OPEN_PROBE, f"{where}{kind}.")
        for request in _REQUESTS:
            found += _beyond(probe.get(request, {}), _OPEN_REQUEST, f"{where}{kind}.{request}.")
    return found


def _shapes(spec: Mapping[str, Any]) -> list[str]:
    """Lists of objects where the forge itself looks into them; the cluster checks the rest."""
    found = [f"{kind}: {_LIST}" for kind in ("containers", "initContainers", "volumes") if not _objects(spec, kind)]
    if found:
        return found
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        name = container.get("name")
        if not isinstance(name, str) or not name:
            found.append("containers: each has a name.")
        else:
            found += [f"{name}: {kind}: {_LIST}" for kind in ("env", "ports") if not _objects(container, kind)]
            found += [f"{name}: {kind}: {_PROBE}" for kind in _PROBES if not _is_probe(container.get(kind, {}))]
    if sum(1 for container in spec.get("containers", []) if container.get("name") == RUNNER) > 1:
        found.append(f"containers: there is one '{RUNNER}' only.")
    return found


_PROBE = "an object of objects and numbers is wanted."
_LIST = f"a list of up to {fields.MAX_ITEMS} objects is wanted."


def _objects(owner: Mapping[str, Any], name: str) -> bool:
    value = owner.get(name, [])
    return (
        isinstance(value, list) and len(value) <= fields.MAX_ITEMS and all(isinstance(each, Mapping) for each in value)
    )


def _is_probe(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(name, {}), Mapping) for name in _REQUESTS)


def _beyond(given: Mapping[str, Any], allowed: frozenset[str], where: str) -> list[str]:
    return [needs_trust(f"{where}{name}") for name in sorted(given.keys() - allowed)]


_CHECKS: dict[str, Callable[[Any], list[str]]] = {
    "image": fields.image,
    "command": fields.words,
    "environment": fields.environment,
    "url": fields.url,
    "namespace": _namespace,
    "metadata": _metadata,
    "spec": _spec,
}
